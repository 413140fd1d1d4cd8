//! Sockets: where the server is, and from which address it is reached, so that ports do not run out.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::poll::checked;
use crate::speech;

pub const PATIENCE: Duration = Duration::from_secs(30); // until a connection is there and bound

extern "C" {
    fn socket(domain: i32, kind: i32, protocol: i32) -> i32;
    fn setsockopt(fd: i32, level: i32, name: i32, value: *const u8, size: u32) -> i32;
    fn bind(fd: i32, address: *const u8, size: u32) -> i32;
    fn connect(fd: i32, address: *const u8, size: u32) -> i32;
}

const UNIX: u16 = 1;
const INET: u16 = 2;
const STREAM: i32 = 1;
const DATAGRAM: i32 = 2;
const NONBLOCK: i32 = 0o4000;
const CLOSE_ON_EXEC: i32 = 0o2000000;
const PATH_BYTES: usize = 107;
// Levels and names of options.
const SEND_LIMIT: (i32, i32) = (1, 21); // which bounds connecting, too
const PORT_LATER: (i32, i32) = (0, 24); // when it connects: ports are then counted by destination
const UNDER_WAY: i32 = 115;

/// Whether what is sent is encrypted: from the first byte, or once the server was asked.
#[derive(Clone, Copy, PartialEq)]
pub enum Secrecy {
    None,
    AtOnce,
    Asked,
}

pub enum Place {
    Inet(SocketAddrV4),
    Path(String),
}

pub struct Server {
    pub place: Place,
    pub secrecy: Secrecy,
    pub datagrams: bool,
}

impl Server {
    /// `tcp://127.0.0.1:3389`, `udp://`, `tls://` and `starttls://` likewise, or `unix:///path`.
    pub fn named(url: &str) -> Result<Self, String> {
        let odd = || format!("{url}: not tcp://, udp://, tls:// or starttls:// and IPv4:PORT, nor unix://PATH");
        let (over, rest) = url.split_once("://").ok_or_else(odd)?;
        let secrecy = match over {
            "tcp" | "udp" | "unix" => Secrecy::None,
            "tls" => Secrecy::AtOnce,
            "starttls" if speech::may_encrypt(0).is_some() => Secrecy::Asked,
            _ => return Err(odd()),
        };
        let place = if over != "unix" {
            Place::Inet(rest.parse().map_err(|_| odd())?)
        } else if (1..=PATH_BYTES).contains(&rest.len()) {
            Place::Path(rest.to_string())
        } else {
            return Err(odd());
        };
        Ok(Server { place, secrecy, datagrams: over == "udp" })
    }

    /// A socket that is connected, or will be where it need not be waited for. Whatever it is, it
    /// sends and receives as a `TcpStream` does.
    pub fn reach(&self, from: Option<Ipv4Addr>, wait: bool) -> io::Result<TcpStream> {
        let (family, address) = match &self.place {
            Place::Inet(address) => (INET, inet(address)),
            Place::Path(path) => (UNIX, unix(path)),
        };
        let transport = if self.datagrams { DATAGRAM } else { STREAM };
        let kind = transport | CLOSE_ON_EXEC | if wait { 0 } else { NONBLOCK };
        // SAFETY: every pointer is to bytes of the size that is said, and outlives its call; the
        // descriptor is new and nobody else's.
        let made = unsafe {
            let fd = checked(socket(i32::from(family), kind, 0))?;
            let made = OwnedFd::from_raw_fd(fd);
            let limit = [PATIENCE.as_secs() as i64, 0];
            checked(setsockopt(fd, SEND_LIMIT.0, SEND_LIMIT.1, limit.as_ptr().cast(), 16))?;
            if let Some(from) = from {
                let own = inet(&SocketAddrV4::new(from, 0));
                checked(setsockopt(fd, PORT_LATER.0, PORT_LATER.1, 1i32.to_ne_bytes().as_ptr(), 4))?;
                checked(bind(fd, own.as_ptr(), own.len() as u32))?;
            }
            match checked(connect(made.as_raw_fd(), address.as_ptr(), address.len() as u32)) {
                Err(error) if error.raw_os_error() == Some(UNDER_WAY) && !wait => {}
                done => drop(done?),
            }
            made
        };
        let stream = TcpStream::from(made);
        if family == INET && !self.datagrams {
            stream.set_nodelay(true)?;
        }
        Ok(stream)
    }
}

fn inet(address: &SocketAddrV4) -> Vec<u8> {
    let parts: [&[u8]; 4] =
        [&INET.to_ne_bytes(), &address.port().to_be_bytes(), &address.ip().octets(), &[0; 8]];
    parts.concat()
}

fn unix(path: &str) -> Vec<u8> {
    [&UNIX.to_ne_bytes(), path.as_bytes(), &[0]].concat()
}

const ADDRESSES: u8 = 200; // 127.0.0.1 and those that follow it
const TIME_WAIT: &str = "06";

/// Ports of this side: a connection that it closes keeps its own for a minute. Of each address half
/// are used, and then the next address; what other connections to the server hold counts, too.
pub struct Ports {
    server: Option<SocketAddrV4>, // None: no port is used up
    each: u64,                    // that may be used of one address
    first: u8,                    // the last part of the first address
    most: u8,                     // addresses
    held: BTreeMap<u8, u64>,      // by the last part of an address
    waited: u64,                  // of them closed, when it began
    last: u8,
}

impl Ports {
    pub fn of(server: &Server, first: u8, most: Option<u8>) -> Self {
        let address = match &server.place {
            Place::Inet(_) if server.datagrams => None,
            Place::Inet(address) if *address.ip() == Ipv4Addr::LOCALHOST => Some(*address),
            _ => None,
        };
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        let ends: Vec<u64> = range.unwrap_or_default().split_whitespace().flat_map(str::parse).collect();
        let all = if let [first, last] = ends[..] { last + 1 - first } else { 0 };
        let (held, waited) = address.map(held).unwrap_or_default();
        let most = most.unwrap_or(ADDRESSES).min(u8::MAX - first);
        Ports { server: address, each: all / 2, first, most, held, waited, last: first }
    }

    /// How many more connections can be made; None: any number.
    pub fn left(&self) -> Option<u64> {
        self.server?;
        let used = |at| self.held.get(&at).copied().unwrap_or(0);
        Some((self.first..=self.end()).map(|at| self.each.saturating_sub(used(at))).sum())
    }

    /// The address for one connection more.
    pub fn take(&mut self) -> Result<Option<Ipv4Addr>, String> {
        if self.server.is_none() {
            return Ok(None);
        }
        if self.free().is_none() {
            self.held = self.server.map(held).unwrap_or_default().0; // a minute frees what was closed
            self.last = self.first;
        }
        let at = self.free().ok_or_else(|| self.short(1))?;
        self.last = at;
        *self.held.entry(at).or_insert(0) += 1;
        Ok(Some(Ipv4Addr::new(127, 0, 0, at)))
    }

    fn free(&self) -> Option<u8> {
        (self.last..=self.end()).find(|at| self.held.get(at).map_or(true, |&used| used < self.each))
    }

    fn end(&self) -> u8 {
        self.first + self.most - 1
    }

    pub fn short(&self, wanted: u64) -> String {
        let left = self.left().unwrap_or(0);
        let (each, most) = (self.each, self.most);
        format!("too few ports: {wanted} connections, {left} left of {each} for each of {most} addresses")
    }

    /// What may be used of an address, addresses so far, and how many closed connections hold a
    /// port: at first, and now.
    pub fn told(&self) -> Option<[u64; 4]> {
        let waiting = held(self.server?).1;
        Some([self.each, u64::from(self.last - self.first + 1), self.waited, waiting])
    }
}

/// Connections to a server by the last part of their address, and how many of them are closed.
fn held(server: SocketAddrV4) -> (BTreeMap<u8, u64>, u64) {
    let [mut by_address, mut waiting] = [BTreeMap::new(), BTreeMap::new()];
    let port = format!(":{:04X}", server.port());
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        for line in text.lines().skip(1) {
            let mut parts = line.split_whitespace().skip(1);
            let (Some(own), Some(other), Some(state)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            // The server's own end of a connection says the same again, unless it closed it first.
            let client = if other.ends_with(&port) {
                own
            } else if own.ends_with(&port) && state == TIME_WAIT {
                other
            } else {
                continue;
            };
            let address = client.split(':').next().unwrap_or_default();
            let last = address.len().checked_sub(8).and_then(|at| address.get(at..at + 2));
            let Some(last) = last.and_then(|hex| u8::from_str_radix(hex, 16).ok()) else {
                continue;
            };
            *by_address.entry(last).or_insert(0) += 1;
            if state == TIME_WAIT {
                *waiting.entry(last).or_insert(0) += 1;
            }
        }
    }
    (by_address, waiting.values().sum())
}
