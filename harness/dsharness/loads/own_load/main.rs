//! Sends requests that were encoded before, checks each answer and times it.
//!
//! What is spoken stands in `speech.rs`, which each product has its own of, and which knows little more
//! than how a message is framed: requests are prepared by the lab, with the result and the number of
//! entries that each must have. One thread and `epoll` drive all
//! connections. Without a rate, a connection begins its next operation when the last one was done;
//! with a rate, operations begin by a clock, on whichever connection is free, and their time counts
//! from when they should have begun. No crate is used, so that building it reaches no registry;
//! encryption is the system's OpenSSL.

mod link;
mod load;
mod message;
mod plan;
mod poll;
mod socket;
mod speech;
mod tls;

use std::collections::BTreeMap;
use std::process::exit;
use std::time::Duration;

use load::{Asked, Extent, Load};
use socket::Server;

const USAGE: &str = "URL REQUESTS --connections N [--silent N] [--disturbers N] \
[--first N] [--addresses N] [--tells SECONDS] [--errors N] --limit SECONDS (--operations N | --seconds S) [--rate N]";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = asked(&words).and_then(|(file, asked)| {
        let mut load = Load::open(asked, plan::read(&file)?)?;
        load.run()?;
        Ok(load)
    });
    match done {
        Ok(load) => load.tell(),
        Err(words) => {
            println!("failed {words}");
            exit(2);
        }
    }
}

fn asked(words: &[String]) -> Result<(String, Asked), String> {
    let [url, file, options @ ..] = words else {
        return Err(format!("usage: {USAGE}"));
    };
    let mut given = BTreeMap::new();
    for pair in options.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("{} has no value; usage: {USAGE}", pair[0]));
        };
        let number: f64 = value.parse().map_err(|_| format!("{name} {value}: not a number"))?;
        if number.is_nan() || number <= 0.0 {
            return Err(format!("{name} {value}: not above 0"));
        }
        given.insert(name.as_str(), number);
    }
    let need = |name: &str| given.get(name).copied().ok_or(format!("{name} is missing"));
    let count = |name: &str| given.get(name).map_or(0, |each| *each as usize);
    let rate = given.get("--rate").copied();
    let seconds = given.get("--seconds").copied();
    let operations = given.get("--operations").map(|each| *each as u64);
    if operations.is_some() == seconds.is_some() {
        return Err(format!("usage: {USAGE}"));
    }
    let extent = Extent {
        operations,
        seconds,
        every: rate.map(|rate| 1.0 / rate),
        errors: given.get("--errors").map(|each| *each as u64),
        limit: Duration::from_secs_f64(need("--limit")?),
        tells: given.get("--tells").map(|each| Duration::from_secs_f64(*each)),
    };
    let asked = Asked {
        server: Server::named(url)?,
        connections: need("--connections")? as usize,
        silent: count("--silent"),
        disturbers: count("--disturbers"),
        first: given.get("--first").map_or(1, |each| *each as u8),
        addresses: given.get("--addresses").map(|each| *each as u8),
        extent,
    };
    Ok((file.clone(), asked))
}
