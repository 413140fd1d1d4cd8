//! Sends LDAP requests that were encoded before, checks each answer and times it.
//!
//! It knows no more of LDAP than how a message is framed: requests are prepared by the lab, with
//! the result and the number of entries that each must have. One thread and `epoll` drive all
//! connections. Without a rate, a connection sends its next request when the last one was answered;
//! with a rate, requests begin by a clock, on whichever connection is free, and their time counts
//! from when they should have begun. No crate is used, so that building it reaches no registry.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::process::exit;
use std::str::FromStr;
use std::time::{Duration, Instant};

const USAGE: &str = "ldapload HOST PORT REQUESTS --connections N [--silent N] --limit SECONDS \
(--operations N [--rate N] | --seconds S)";
const FIRST_ID: u32 = 0x0100_0000; // with four bytes and no zero before them, as DER wants it
const IDS: u32 = 0x0100_0000; // then they begin again
const TIMER: u64 = u64::MAX; // in place of a connection's number
const LOST: &str = "the connection was closed";

/// One line of the file: `KIND RESULT ENTRIES PAGE HEX`; the bytes are all that follows the message
/// id, but for the control that asks for pages. Without bytes nothing is sent: time passes.
struct Request {
    kind: usize,
    result: u32,
    entries: Option<u64>,
    page: Option<u32>,
    body: Vec<u8>,
}

struct Plan {
    kinds: Vec<String>,
    first: Vec<u8>, // sent once on each connection; empty: nothing is
    requests: Vec<Request>,
}

/// A request that waits for its answer; of a search by pages, for that of its last page.
struct Flight {
    request: usize,
    id: u32,
    due: Instant,
    sent: Instant,
    entries: u64,
}

struct Connection {
    stream: Option<TcpStream>, // None once it is closed, which epoll then forgets
    received: Vec<u8>,
    unsent: Vec<u8>,
    flight: Option<Flight>,
    next_id: u32,
}

/// Counts of microseconds: exact below 2048, then with eleven bits that count.
#[derive(Default)]
struct Times(BTreeMap<u64, u64>);

impl Times {
    fn add(&mut self, time: Duration) {
        let us = ((time.as_nanos() + 500) / 1000) as u64;
        let shift = (64 - us.leading_zeros()).saturating_sub(11);
        *self.0.entry((us >> shift) << shift).or_insert(0) += 1;
    }
}

#[derive(Default)]
struct Tally {
    operations: u64,
    errors: BTreeMap<String, u64>,
    times: Vec<Times>,   // by kind, from when it was due
    service: Vec<Times>, // by kind, from when it was sent
    late: Times,         // by how much the clock was noticed late
}

/// How much is to be done: so many operations, or as many as fit; by a clock or as answers come.
/// By a clock a run lasts until the operation after its last one would be due.
struct Extent {
    operations: Option<u64>,
    seconds: Option<f64>,
    every: Option<f64>, // seconds from one request to the next
    limit: Duration,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = asked(&words).and_then(|asked| {
        let mut load = Load::open(&asked, read_plan(&asked.file)?)?;
        load.run(&asked.extent)?;
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

struct Asked {
    host: String,
    port: u16,
    file: String,
    connections: usize,
    silent: usize, // more of them, which are bound and then say nothing
    extent: Extent,
}

fn asked(words: &[String]) -> Result<Asked, String> {
    let [host, port, file, options @ ..] = words else {
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
    let rate = given.get("--rate").copied();
    let seconds = given.get("--seconds").copied();
    let operations = given.get("--operations").map(|each| *each as u64);
    if operations.is_some() == seconds.is_some() || (rate.is_some() && operations.is_none()) {
        return Err(format!("usage: {USAGE}"));
    }
    let extent = Extent {
        operations,
        seconds,
        every: rate.map(|rate| 1.0 / rate),
        limit: Duration::from_secs_f64(need("--limit")?),
    };
    Ok(Asked {
        host: host.clone(),
        port: port.parse().map_err(|_| format!("{port} is no port"))?,
        file: file.clone(),
        connections: need("--connections")? as usize,
        silent: given.get("--silent").copied().unwrap_or(0.0) as usize,
        extent,
    })
}

fn read_plan(file: &str) -> Result<Plan, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut plan = Plan { kinds: vec![], first: vec![], requests: vec![] };
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("{file}:{}: {what}", number + 1);
        let parts: Vec<&str> = line.split(' ').collect();
        let [kind, result, entries, page, hex] = parts[..] else {
            return Err(wrong("not KIND RESULT ENTRIES PAGE HEX"));
        };
        let body = bytes(hex).ok_or(wrong("no hexadecimal bytes"))?;
        if kind == "first" {
            plan.first = body;
            continue;
        }
        let known = plan.kinds.iter().position(|each| each == kind);
        let kind = known.unwrap_or_else(|| {
            plan.kinds.push(kind.to_string());
            plan.kinds.len() - 1
        });
        let result = result.parse().map_err(|_| wrong("no result code"))?;
        let entries = unless_dash(entries).map_err(|_| wrong("no number of entries"))?;
        let page = unless_dash(page).map_err(|_| wrong("no size of a page"))?;
        plan.requests.push(Request { kind, result, entries, page, body });
    }
    if plan.requests.is_empty() {
        return Err(format!("{file}: no request"));
    }
    Ok(plan)
}

fn unless_dash<T: FromStr>(text: &str) -> Result<Option<T>, T::Err> {
    if text == "-" { Ok(None) } else { text.parse().map(Some) }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if hex.len() % 2 != 0 || !hex.is_ascii() {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}

/// An element of these parts.
fn wrapped(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|each| each.len()).sum();
    let mut made = vec![tag];
    if length < 0x80 {
        made.push(length as u8);
    } else {
        made.push(0x84);
        made.extend((length as u32).to_be_bytes());
    }
    parts.iter().for_each(|each| made.extend(*each));
    made
}

/// A message: a sequence of the id, in four bytes, and the body.
fn message(id: u32, body: &[&[u8]]) -> Vec<u8> {
    let id = wrapped(INTEGER, &[&id.to_be_bytes()]);
    wrapped(SEQUENCE, &[&[&id[..]], body].concat())
}

/// The controls of a request for the page that a cookie stands for (RFC 2696).
fn next_page(size: u32, cookie: &[u8]) -> Vec<u8> {
    let digits = size.to_be_bytes();
    let zeros = (0..3).take_while(|&at| digits[at] == 0 && digits[at + 1] < 0x80).count();
    let size = wrapped(INTEGER, &[&digits[zeros..]]); // as short as it can be, as DER wants it
    let value = wrapped(SEQUENCE, &[&size, &wrapped(OCTETS, &[cookie])]);
    let control = [wrapped(OCTETS, &[PAGES]), wrapped(OCTETS, &[&value])].concat();
    wrapped(CONTROLS, &[&wrapped(SEQUENCE, &[&control])])
}

/// The cookie of the next page in the controls of an answer; None at the last one.
fn cookie(data: &[u8], mut at: usize, end: usize) -> Result<Option<Vec<u8>>, String> {
    let part = |at| element(data, at)?.ok_or_else(odd);
    while at < end {
        let (_, inside, control_end) = part(at)?;
        let (_, kind, mut value) = part(inside)?;
        let is_pages = &data[kind..value] == PAGES;
        at = control_end;
        while is_pages && value < control_end {
            let (tag, begin, after) = part(value)?;
            if tag == OCTETS {
                let size_end = part(part(begin)?.1)?.2;
                let (_, first, last) = part(size_end)?;
                return Ok((first < last).then(|| data[first..last].to_vec()));
            }
            value = after;
        }
    }
    Ok(None)
}

/// A tag, where its content begins, and where it ends; None while bytes are missing.
fn element(data: &[u8], at: usize) -> Result<Option<(u8, usize, usize)>, String> {
    let (Some(&tag), Some(&short)) = (data.get(at), data.get(at + 1)) else {
        return Ok(None);
    };
    let (begin, length) = if short < 0x80 {
        (at + 2, short as usize)
    } else {
        let size = (short & 0x7f) as usize;
        if size == 0 || size > 4 {
            return Err(odd());
        }
        let Some(digits) = data.get(at + 2..at + 2 + size) else {
            return Ok(None);
        };
        (at + 2 + size, digits.iter().fold(0, |sum, &digit| sum << 8 | digit as usize))
    };
    Ok((begin + length <= data.len()).then_some((tag, begin, begin + length)))
}

/// One answer: the message's id, the tag of its operation, its result where it has one, and what it
/// says of a next page.
struct Answer {
    id: u32,
    tag: u8,
    result: u32,
    cookie: Option<Vec<u8>>,
    end: usize,
}

fn odd() -> String {
    "an answer that is not LDAP".to_string()
}

fn number(data: &[u8]) -> u32 {
    data.iter().fold(0, |sum, &digit| sum << 8 | u32::from(digit))
}

fn answer(data: &[u8], at: usize) -> Result<Option<Answer>, String> {
    let Some((SEQUENCE, begin, end)) = element(data, at)? else {
        let none = data.len() <= at || data[at] == SEQUENCE;
        return if none { Ok(None) } else { Err(odd()) };
    };
    let whole = &data[..end];
    let (_, id_begin, id_end) = element(whole, begin)?.ok_or_else(odd)?;
    let (tag, content, content_end) = element(whole, id_end)?.ok_or_else(odd)?;
    let (mut result, mut next) = (0, None);
    if tag != ENTRY && tag != REFERENCE {
        let (_, code, code_end) = element(whole, content)?.ok_or_else(odd)?;
        result = number(&whole[code..code_end]);
        if let Some((CONTROLS, first, last)) = element(whole, content_end)? {
            next = cookie(whole, first, last)?;
        }
    }
    Ok(Some(Answer { id: number(&whole[id_begin..id_end]), tag, result, cookie: next, end }))
}

const PAGES: &[u8] = b"1.2.840.113556.1.4.319";
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
const CONTROLS: u8 = 0xa0;
const ENTRY: u8 = 0x64;
const REFERENCE: u8 = 0x73;
const INTERMEDIATE: u8 = 0x79;

struct Load {
    plan: Plan,
    connections: Vec<Connection>,
    silent: Vec<TcpStream>,
    free: VecDeque<usize>,
    tally: Tally,
    begun: u64,
    started: Instant,
    ended: Instant,
    cpu: Duration,
}

impl Load {
    /// All connections, each of which was bound in turn.
    fn open(asked: &Asked, plan: Plan) -> Result<Self, String> {
        let host = asked.host.as_str();
        let found = (host, asked.port).to_socket_addrs();
        let mut addresses = found.map_err(|error| format!("{host}: {error}"))?;
        let address = addresses.next().ok_or(format!("{host}: no address"))?;
        let connected = || {
            let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(30))
                .map_err(|error| format!("cannot connect: {error}"))?;
            stream.set_nodelay(true).map_err(|error| error.to_string())?;
            if !plan.first.is_empty() {
                introduce(&mut stream, &plan.first)?;
            }
            stream.set_nonblocking(true).map_err(|error| error.to_string())?;
            Ok::<TcpStream, String>(stream)
        };
        let silent = (0..asked.silent).map(|_| connected()).collect::<Result<_, _>>()?;
        let mut connections = Vec::with_capacity(asked.connections);
        for _ in 0..asked.connections {
            connections.push(Connection {
                stream: Some(connected()?),
                received: Vec::new(),
                unsent: Vec::new(),
                flight: None,
                next_id: FIRST_ID,
            });
        }
        let kinds = plan.kinds.len();
        let tally = Tally {
            times: (0..kinds).map(|_| Times::default()).collect(),
            service: (0..kinds).map(|_| Times::default()).collect(),
            ..Tally::default()
        };
        let now = Instant::now();
        Ok(Load {
            plan,
            free: (0..connections.len()).collect(),
            connections,
            silent,
            tally,
            begun: 0,
            started: now,
            ended: now,
            cpu: Duration::ZERO,
        })
    }

    fn run(&mut self, extent: &Extent) -> Result<(), String> {
        let poll = Poll::new(&self.connections).map_err(|error| error.to_string())?;
        self.started = Instant::now();
        let cpu = cpu_so_far();
        let last = self.started + extent.limit;
        let until = extent.seconds.map(|each| self.started + Duration::from_secs_f64(each));
        self.send_due(&poll, extent, until, false)?;
        while !self.finished(extent, until) {
            let now = Instant::now();
            if now >= last {
                self.error("the time was over before its operations were");
                break;
            }
            let mut timed = false;
            for number in poll.wait(last - now).map_err(|error| error.to_string())? {
                if number == TIMER {
                    timed = true;
                } else {
                    self.serve(&poll, number as usize)?;
                }
            }
            self.send_due(&poll, extent, until, timed)?;
        }
        self.ended = Instant::now();
        self.cpu = cpu_so_far() - cpu;
        let mut any = [0];
        let lost = self.silent.iter().filter(|each| each.peek(&mut any).is_ok()).count(); // or told so
        (0..lost).for_each(|_| self.error(LOST));
        Ok(())
    }

    /// The place of the next operation's request.
    fn next(&self) -> usize {
        (self.begun % self.plan.requests.len() as u64) as usize
    }

    /// When the next operation should begin, by the clock.
    fn due(&self, extent: &Extent) -> Option<Instant> {
        let every = extent.every?;
        Some(self.started + Duration::from_secs_f64(every * self.begun as f64))
    }

    fn finished(&self, extent: &Extent, until: Option<Instant>) -> bool {
        let in_flight = self.connections.iter().any(|each| each.flight.is_some());
        let all = extent.operations.is_some_and(|wanted| self.begun >= wanted);
        let over = until.is_some_and(|end| Instant::now() >= end)
            || (all && self.due(extent).map_or(true, |due| due <= Instant::now()));
        (over && !in_flight) || self.connections.iter().all(|each| each.stream.is_none())
    }

    /// Begin what should have begun by now, as far as connections are free.
    fn send_due(
        &mut self,
        poll: &Poll,
        extent: &Extent,
        until: Option<Instant>,
        timed: bool,
    ) -> Result<(), String> {
        let mut noticed = timed;
        loop {
            let now = Instant::now();
            if until.is_some_and(|end| now >= end) {
                return Ok(());
            }
            let due = self.due(extent).unwrap_or(now);
            if due > now {
                return poll.wake_in(due - now).map_err(|error| error.to_string());
            }
            if extent.operations.is_some_and(|wanted| self.begun >= wanted) {
                return Ok(());
            }
            let Some(number) = self.free.pop_front() else {
                return Ok(()); // an answer frees one, and this is called again
            };
            if noticed && !self.plan.requests[self.next()].body.is_empty() {
                self.tally.late.add(now - due);
                noticed = false;
            }
            self.send(poll, number, due)?;
        }
    }

    fn send(&mut self, poll: &Poll, number: usize, due: Instant) -> Result<(), String> {
        let request = self.next();
        self.begun += 1;
        let flight = Flight { request, id: FIRST_ID, due, sent: Instant::now(), entries: 0 };
        if self.plan.requests[request].body.is_empty() {
            self.free.push_back(number);
            self.record(&flight, 0);
            return Ok(());
        }
        self.ask(poll, number, flight, &[])
    }

    /// Send what a flight is about; of a search by pages the one that this cookie stands for.
    fn ask(
        &mut self,
        poll: &Poll,
        number: usize,
        mut flight: Flight,
        cookie: &[u8],
    ) -> Result<(), String> {
        let asked = &self.plan.requests[flight.request];
        let made = &mut self.connections[number];
        flight.id = made.next_id;
        made.next_id = FIRST_ID + (flight.id - FIRST_ID + 1) % IDS;
        let controls = asked.page.map(|size| next_page(size, cookie)).unwrap_or_default();
        made.unsent = message(flight.id, &[&asked.body, &controls]);
        made.flight = Some(flight);
        self.flush(poll, number)
    }

    fn flush(&mut self, poll: &Poll, number: usize) -> Result<(), String> {
        let made = &mut self.connections[number];
        while let Some(stream) = made.stream.as_mut().filter(|_| !made.unsent.is_empty()) {
            match stream.write(&made.unsent) {
                Ok(0) => return Ok(self.close(number, LOST)),
                Ok(count) => drop(made.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return poll.watch(stream, number, true).map_err(|e| e.to_string());
                }
                Err(error) => return Ok(self.close(number, &error.to_string())),
            }
        }
        Ok(())
    }

    /// What a connection is ready for.
    fn serve(&mut self, poll: &Poll, number: usize) -> Result<(), String> {
        if !self.connections[number].unsent.is_empty() {
            self.flush(poll, number)?;
            let made = &self.connections[number];
            if let Some(stream) = made.stream.as_ref().filter(|_| made.unsent.is_empty()) {
                poll.watch(stream, number, false).map_err(|error| error.to_string())?;
            }
        }
        let mut part = [0; 65536];
        while let Some(stream) = self.connections[number].stream.as_mut() {
            match stream.read(&mut part) {
                Ok(0) => self.close(number, LOST),
                Ok(count) => {
                    self.connections[number].received.extend(&part[..count]);
                    if let Err(words) = self.answers(poll, number) {
                        self.close(number, &words);
                    }
                    if count < part.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.close(number, &error.to_string()),
            }
        }
        Ok(())
    }

    /// All answers that are whole.
    fn answers(&mut self, poll: &Poll, number: usize) -> Result<(), String> {
        let mut at = 0;
        while let Some(seen) = answer(&self.connections[number].received, at)? {
            at = seen.end;
            let made = &mut self.connections[number];
            let Some(flight) = made.flight.as_mut().filter(|each| each.id == seen.id) else {
                return Err("an answer that was not asked for".to_string());
            };
            match seen.tag {
                ENTRY => flight.entries += 1,
                REFERENCE | INTERMEDIATE => {}
                _ => {
                    let flight = made.flight.take().expect("it was there");
                    match seen.cookie.filter(|_| seen.result == 0) {
                        Some(cookie) => self.ask(poll, number, flight, &cookie)?,
                        None => {
                            self.free.push_back(number);
                            self.record(&flight, seen.result);
                        }
                    }
                }
            }
        }
        self.connections[number].received.drain(..at);
        Ok(())
    }

    fn record(&mut self, flight: &Flight, result: u32) {
        let now = Instant::now();
        let asked = &self.plan.requests[flight.request];
        let kind = &self.plan.kinds[asked.kind];
        if result != asked.result {
            let words = format!("{kind}: result {result} instead of {}", asked.result);
            return self.error(&words);
        }
        if let Some(wanted) = asked.entries.filter(|&wanted| wanted != flight.entries) {
            let words = format!("{kind}: {} entries instead of {wanted}", flight.entries);
            return self.error(&words);
        }
        self.tally.operations += 1;
        self.tally.times[asked.kind].add(now - flight.due);
        self.tally.service[asked.kind].add(now - flight.sent);
    }

    fn close(&mut self, number: usize, words: &str) {
        let made = &mut self.connections[number];
        made.stream = None;
        made.flight = None;
        made.unsent.clear();
        self.free.retain(|&each| each != number);
        self.error(words);
    }

    fn error(&mut self, words: &str) {
        *self.tally.errors.entry(words.to_string()).or_insert(0) += 1;
    }

    /// What `ldapload.py` reads.
    fn tell(&self) {
        println!("operations {}", self.tally.operations);
        println!("seconds {:.6}", (self.ended - self.started).as_secs_f64());
        println!("cpu {}", self.cpu.as_micros());
        for (words, count) in &self.tally.errors {
            println!("error {count} {words}");
        }
        for (at, kind) in self.plan.kinds.iter().enumerate() {
            show(&format!("time {kind}"), &self.tally.times[at]);
            show(&format!("service {kind}"), &self.tally.service[at]);
        }
        show("late", &self.tally.late);
        println!("finished");
    }
}

fn show(what: &str, times: &Times) {
    for (us, count) in &times.0 {
        println!("{what} {us} {count}");
    }
}

/// Send the first request of a connection and wait for its result, which must be 0.
fn introduce(stream: &mut TcpStream, body: &[u8]) -> Result<(), String> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(|error| error.to_string())?;
    stream.write_all(&message(1 + FIRST_ID, &[body])).map_err(|error| error.to_string())?;
    let (mut received, mut part) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(seen) = answer(&received, 0)? {
            return match seen.result {
                0 => Ok(()),
                code => Err(format!("the first request of a connection has result {code}")),
            };
        }
        match stream.read(&mut part) {
            Ok(0) => return Err(LOST.to_string()),
            Ok(count) => received.extend(&part[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("no answer to a first request: {error}")),
        }
    }
}

// ── What Rust's own library has no words for ─────────────────────────────────────────────────────

#[cfg_attr(target_arch = "x86_64", repr(C, packed))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C))]
#[derive(Clone, Copy)]
struct Event {
    events: u32,
    data: u64,
}

#[repr(C)]
#[derive(Default)]
struct Spec {
    every: [i64; 2],
    value: [i64; 2], // seconds, nanoseconds
}

extern "C" {
    fn epoll_create1(flags: i32) -> i32;
    fn epoll_ctl(poll: i32, what: i32, fd: i32, event: *mut Event) -> i32;
    fn epoll_wait(poll: i32, events: *mut Event, most: i32, timeout_ms: i32) -> i32;
    fn timerfd_create(clock: i32, flags: i32) -> i32;
    fn timerfd_settime(fd: i32, flags: i32, new: *const Spec, old: *mut Spec) -> i32;
    fn read(fd: i32, data: *mut u64, size: usize) -> isize;
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    fn prctl(option: i32, value: u64, a: u64, b: u64, c: u64) -> i32;
}

fn cpu_so_far() -> Duration {
    let mut time = [0; 2];
    // SAFETY: the kernel writes seconds and nanoseconds.
    unsafe { clock_gettime(PROCESS_CPU, &mut time) };
    Duration::new(time[0] as u64, time[1] as u32)
}

const PROCESS_CPU: i32 = 2;
const ADD: i32 = 1;
const CHANGE: i32 = 3;
const READABLE: u32 = 1;
const WRITABLE: u32 = 4;
const MONOTONIC: i32 = 1;
const NONBLOCKING: i32 = 0o4000;
const TIMER_SLACK: i32 = 29;

fn checked(status: i32) -> io::Result<i32> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

struct Poll {
    poll: i32,
    timer: i32,
}

impl Poll {
    fn new(connections: &[Connection]) -> io::Result<Self> {
        // SAFETY: no memory is handed over; a failure is noticed by the status.
        let (poll, timer) = unsafe {
            prctl(TIMER_SLACK, 1, 0, 0, 0); // ns: timers are not late to save power
            (checked(epoll_create1(0))?, checked(timerfd_create(MONOTONIC, NONBLOCKING))?)
        };
        let made = Poll { poll, timer };
        made.control(ADD, timer, TIMER, READABLE)?;
        for (number, stream) in connections.iter().filter_map(|each| each.stream.as_ref()).enumerate() {
            made.control(ADD, stream.as_raw_fd(), number as u64, READABLE)?;
        }
        Ok(made)
    }

    fn watch(&self, stream: &TcpStream, number: usize, writable: bool) -> io::Result<()> {
        let events = if writable { READABLE | WRITABLE } else { READABLE };
        self.control(CHANGE, stream.as_raw_fd(), number as u64, events)
    }

    fn control(&self, what: i32, fd: i32, data: u64, events: u32) -> io::Result<()> {
        let mut event = Event { events, data };
        // SAFETY: the event outlives the call, which copies it.
        checked(unsafe { epoll_ctl(self.poll, what, fd, &mut event) }).map(drop)
    }

    fn wake_in(&self, time: Duration) -> io::Result<()> {
        let value = [time.as_secs() as i64, i64::from(time.subsec_nanos().max(1))];
        let spec = Spec { value, ..Spec::default() };
        // SAFETY: the new value outlives the call; the old one is not asked for.
        let status = unsafe { timerfd_settime(self.timer, 0, &spec, std::ptr::null_mut()) };
        checked(status).map(drop)
    }

    /// The numbers of what is ready.
    fn wait(&self, most: Duration) -> io::Result<Vec<u64>> {
        let mut events = [Event { events: 0, data: 0 }; 64];
        let timeout_ms = most.as_millis().clamp(1, 1000) as i32;
        // SAFETY: the kernel writes at most 64 events into the array of 64.
        let found = unsafe { epoll_wait(self.poll, events.as_mut_ptr(), 64, timeout_ms) };
        let count = match checked(found) {
            Ok(count) => count as usize,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let ready: Vec<u64> = events[..count].iter().map(|each| each.data).collect();
        if ready.contains(&TIMER) {
            let mut times = 0;
            // SAFETY: eight bytes into a u64.
            unsafe { read(self.timer, &mut times, 8) };
        }
        Ok(ready)
    }
}
