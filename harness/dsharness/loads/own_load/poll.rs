//! Waiting for sockets and the clock: what Rust's own library has no words for.

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

pub const TIMER: u64 = u64::MAX; // in place of a connection's number

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

pub fn cpu_so_far() -> Duration {
    let mut time = [0; 2];
    // SAFETY: the kernel writes seconds and nanoseconds.
    unsafe { clock_gettime(PROCESS_CPU, &mut time) };
    Duration::new(time[0] as u64, time[1] as u32)
}

/// How long its only thread could have run and had no CPU; nothing where the kernel does not tell.
pub fn starved_so_far() -> Duration {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let waited = told.split_whitespace().nth(1).and_then(|text| text.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}

const PROCESS_CPU: i32 = 2;
const ADD: i32 = 1;
const CHANGE: i32 = 3;
const READABLE: u32 = 1;
const WRITABLE: u32 = 4;
const MONOTONIC: i32 = 1;
const NONBLOCKING: i32 = 0o4000;
const TIMER_SLACK: i32 = 29;

pub fn checked(status: i32) -> io::Result<i32> {
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(status)
    }
}

pub struct Poll {
    poll: i32,
    timer: i32,
}

impl Poll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is handed over; a failure is noticed by the status.
        let (poll, timer) = unsafe {
            prctl(TIMER_SLACK, 1, 0, 0, 0); // ns: timers are not late to save power
            (checked(epoll_create1(0))?, checked(timerfd_create(MONOTONIC, NONBLOCKING))?)
        };
        let made = Poll { poll, timer };
        made.control(ADD, timer, TIMER, READABLE)?;
        Ok(made)
    }

    pub fn add(&self, stream: &TcpStream, number: usize) -> io::Result<()> {
        self.control(ADD, stream.as_raw_fd(), number as u64, READABLE)
    }

    pub fn watch(&self, stream: &TcpStream, number: usize, writable: bool) -> io::Result<()> {
        let events = if writable { READABLE | WRITABLE } else { READABLE };
        self.control(CHANGE, stream.as_raw_fd(), number as u64, events)
    }

    fn control(&self, what: i32, fd: i32, data: u64, events: u32) -> io::Result<()> {
        let mut event = Event { events, data };
        // SAFETY: the event outlives the call, which copies it.
        checked(unsafe { epoll_ctl(self.poll, what, fd, &mut event) }).map(drop)
    }

    pub fn wake_in(&self, time: Duration) -> io::Result<()> {
        let value = [time.as_secs() as i64, i64::from(time.subsec_nanos().max(1))];
        let spec = Spec { value, ..Spec::default() };
        // SAFETY: the new value outlives the call; the old one is not asked for.
        let status = unsafe { timerfd_settime(self.timer, 0, &spec, std::ptr::null_mut()) };
        checked(status).map(drop)
    }

    /// The numbers of what is ready.
    pub fn wait(&self, most: Duration) -> io::Result<Vec<u64>> {
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
