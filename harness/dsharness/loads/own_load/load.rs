//! The load: connections, what waits on them, and what came of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::link::{Link, Wait};
use crate::message::{Answer, Request, Waiting, MOST};
use crate::plan::{Operation, Plan};
use crate::poll::{cpu_so_far, starved_so_far, Poll, TIMER};
use crate::socket::{Ports, Secrecy, Server, PATIENCE};
use crate::speech;
use crate::tls::Context;

const FIRST_ID: u32 = 0x0100_0000; // with four bytes and no zero before them, as DER wants it
const IDS: u32 = 0x0100_0000; // then they begin again
const AGAIN: Duration = Duration::from_millis(10); // until a step is asked again
const MOST_ERRORS: usize = 500; // kinds: a server may answer something else each time
const OTHERS: &str = "errors of still other kinds";
const CLOSE: u32 = 1000; // microseconds
const LOST: &str = "the connection was closed";

pub struct Asked {
    pub server: Server,
    pub connections: usize,
    pub silent: usize,     // more of them, which are bound and then say nothing
    pub disturbers: usize, // and those that ask as long as the others do, and are not counted
    pub first: u8,             // the address that connections come from first
    pub addresses: Option<u8>, // that they come from, at most
    pub extent: Extent,
}

/// How much is to be done: so many operations, or as many as fit; by a clock or as answers come.
/// By a clock a run lasts until the operation after its last one would be due.
pub struct Extent {
    pub operations: Option<u64>,
    pub seconds: Option<f64>,
    pub every: Option<f64>, // seconds from one operation to the next
    pub limit: Duration,
    pub errors: Option<u64>, // so many end it
    pub tells: Option<Duration>, // so often, while it runs, what came of it since
}

/// An operation that is under way: the step that waits for its answer; of a search by pages, for
/// that of its last page.
struct Flight {
    operation: usize,
    step: usize,
    id: u32,
    name: u32, // of the operation, in requests that have a place for it
    due: Instant,
    begun: Instant,
    since: Instant, // the step: the first one from when the operation was due
    entries: u64,
    kept: Vec<u8>, // of the answer to the step before it
}

impl Flight {
    fn new(operation: usize, due: Instant, begun: Instant) -> Self {
        let (id, kept) = (FIRST_ID, vec![]);
        Flight { operation, step: 0, id, name: 0, due, begun, since: due, entries: 0, kept }
    }
}

struct Connection {
    disturbs: bool,
    link: Option<Link>, // None once it is closed, which epoll then forgets, or before it is there
    lost: bool,
    received: Vec<u8>,
    unsent: Vec<u8>,
    flight: Option<Flight>,
    next_id: u32,
}

/// A step that is asked again then, on this connection, and what was wrong with its last answer.
struct Later {
    due: Instant,
    number: usize,
    flight: Flight,
    wrong: String,
}

/// Operations that are taken in turn, and the connections that are free for them.
#[derive(Default)]
struct Queue {
    begun: u64,
    free: VecDeque<usize>,
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

    fn join(&mut self, other: &Times) {
        for (us, count) in &other.0 {
            *self.0.entry(*us).or_insert(0) += count;
        }
    }

    fn show(&self, what: &str, to: &mut String) {
        for (us, count) in &self.0 {
            *to += &format!("{what} {us} {count}\n");
        }
    }
}

#[derive(Default)]
struct Tally {
    operations: u64,
    disturbances: u64, // answers to disturbers
    errors: BTreeMap<String, u64>,
    times: Vec<Times>, // by kind, from when an operation was due
    sent: Vec<Times>,  // the same from when it began, where a clock says when it is due
    steps: Vec<Times>, // by the name of a step that has one
    late: Times,       // by how much the clock was noticed late
    lasted: Duration,
    cpu: Duration,
    starved: Duration,
}

impl Tally {
    fn of(plan: &Plan) -> Self {
        let times = |names: &[String]| names.iter().map(|_| Times::default()).collect();
        let (kinds, steps) = (&plan.kinds, &plan.step_names);
        Tally { times: times(kinds), sent: times(kinds), steps: times(steps), ..Tally::default() }
    }

    fn join(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.disturbances += other.disturbances;
        for (words, count) in &other.errors {
            let known = self.errors.len() < MOST_ERRORS || self.errors.contains_key(words);
            *self.errors.entry(if known { words } else { OTHERS }.to_string()).or_insert(0) += count;
        }
        for (all, part) in self.times.iter_mut().zip(&other.times) {
            all.join(part);
        }
        for (all, part) in self.sent.iter_mut().zip(&other.sent) {
            all.join(part);
        }
        for (all, part) in self.steps.iter_mut().zip(&other.steps) {
            all.join(part);
        }
        self.late.join(&other.late);
        self.lasted += other.lasted;
        self.cpu += other.cpu;
        self.starved += other.starved;
    }

    /// What `own_load.py` reads, a fact a line.
    fn told(&self, plan: &Plan) -> String {
        let mut told = format!("operations {}\n", self.operations);
        told += &format!("seconds {:.6}\n", self.lasted.as_secs_f64());
        told += &format!("cpu {}\n", self.cpu.as_micros());
        told += &format!("starved {}\n", self.starved.as_micros());
        if !plan.disturbing.is_empty() {
            told += &format!("disturbances {}\n", self.disturbances);
        }
        for (words, count) in &self.errors {
            told += &format!("error {count} {words}\n");
        }
        for (kind, times) in plan.kinds.iter().zip(&self.times) {
            times.show(&format!("time {kind}"), &mut told);
        }
        for (kind, times) in plan.kinds.iter().zip(&self.sent) {
            times.show(&format!("sent {kind}"), &mut told);
        }
        for (name, times) in plan.step_names.iter().zip(&self.steps) {
            times.show(&format!("step {name}"), &mut told);
        }
        self.late.show("late", &mut told);
        told
    }
}

/// A moment, and what this program had used of its CPU by then.
struct Mark {
    at: Instant,
    cpu: Duration,
    starved: Duration,
}

impl Mark {
    fn now() -> Self {
        Mark { at: Instant::now(), cpu: cpu_so_far(), starved: starved_so_far() }
    }
}

pub struct Load {
    plan: Plan,
    poll: Poll,
    extent: Extent,
    doors: Vec<Doors>, // of the load's own connections, and others of its disturbers
    connections: Vec<Connection>,
    silent: Vec<Link>,
    counted: Queue,
    disturbing: Queue,
    later: VecDeque<Later>,
    pausing: BinaryHeap<Reverse<(Instant, usize)>>, // connections, and until when
    nonce: u32, // of the last request
    tally: Tally, // since the mark
    all: Tally,   // until then
    mark: Mark,
    started: Instant,
    failed: u64, // errors so far
}

/// A number that no request of the last minutes had, of whatever connection or run: a server may take
/// two requests with the same bytes for one that was sent again, and repeat its first answer.
fn nonce_after(last: u32) -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock = now.as_micros() as u32 & 0x3fff_ffff | 0x4000_0000; // comes again after 18 minutes
    if clock <= last && last - clock < CLOSE {
        last + 1
    } else {
        clock
    }
}

fn words(error: std::io::Error) -> String {
    error.to_string()
}

impl Load {
    /// All connections, each of which was bound in turn.
    pub fn open(asked: Asked, plan: Plan) -> Result<Self, String> {
        let mut doors = vec![Doors::to(asked.server, asked.first, asked.addresses)?];
        if let Some(url) = &plan.disturbed_at {
            doors.push(Doors::to(Server::named(url)?, asked.first, asked.addresses)?);
        }
        let mut bound = |disturbs| door(&mut doors, disturbs).bound(&plan.first);
        let silent = (0..asked.silent).map(|_| bound(false)).collect::<Result<_, _>>()?;
        if asked.disturbers > 0 && plan.disturbing.is_empty() {
            return Err("there is nothing that disturbers ask for".to_string());
        }
        let all = asked.connections + asked.disturbers;
        let poll = Poll::new().map_err(words)?;
        let mut connections = Vec::with_capacity(all);
        for number in 0..all {
            let disturbs = number >= asked.connections;
            let operations = if disturbs { &plan.disturbing } else { &plan.counted };
            let link = if operations[0].connects() { None } else { Some(bound(disturbs)?) };
            if let Some(link) = &link {
                poll.add(&link.stream, number).map_err(words)?;
            }
            connections.push(Connection {
                disturbs,
                link,
                lost: false,
                received: Vec::new(),
                unsent: Vec::new(),
                flight: None,
                next_id: FIRST_ID,
            });
        }
        if plan.counted[0].connects() {
            doors[0].enough_for(asked.extent.operations.unwrap_or(0))?;
        }
        let nothing = || Tally::of(&plan);
        let (tally, all_of_it) = (nothing(), nothing());
        Ok(Load {
            plan,
            poll,
            extent: asked.extent,
            doors,
            connections,
            silent,
            counted: Queue { begun: 0, free: (0..asked.connections).collect() },
            disturbing: Queue { begun: 0, free: (asked.connections..all).collect() },
            later: VecDeque::new(),
            pausing: BinaryHeap::new(),
            nonce: 0,
            tally,
            all: all_of_it,
            mark: Mark::now(),
            started: Instant::now(),
            failed: 0,
        })
    }

    pub fn run(&mut self) -> Result<(), String> {
        self.mark = Mark::now();
        self.started = self.mark.at;
        let last = self.started + self.extent.limit;
        self.disturb()?;
        self.send_due(false)?;
        while !self.finished() {
            let now = Instant::now();
            if now >= last {
                self.error("the time was over before its operations were");
                break;
            }
            let next = self.extent.tells.map(|every| self.mark.at + every);
            if next.is_some_and(|next| now >= next) {
                self.take_stock();
                continue;
            }
            let mut timed = false;
            for number in self.ready(next.unwrap_or(last).min(last))? {
                if number == TIMER {
                    timed = true;
                } else {
                    self.serve(number as usize)?;
                }
            }
            if self.gives_up() {
                break;
            }
            self.end_pauses()?;
            self.send_due(timed && self.extent.every.is_some())?;
            self.ask_again()?;
            self.disturb()?;
        }
        let mut any = [0];
        let ended = |each: &&Link| each.stream.peek(&mut any).is_ok(); // or told so
        let lost = self.silent.iter().filter(ended).count();
        (0..lost).for_each(|_| self.error(LOST));
        self.take_stock();
        self.see_ends()?;
        let errors = std::mem::take(&mut self.tally.errors); // no more of it is the run's
        self.all.join(&Tally { errors, ..Tally::default() });
        Ok(())
    }

    /// What is ready until then, or until something is asked again.
    fn ready(&self, until: Instant) -> Result<Vec<u64>, String> {
        let again = self.later.front().map_or(until, |each| each.due.min(until));
        self.poll.wait(again.saturating_duration_since(Instant::now())).map_err(words)
    }

    /// Connections whose pause is over are free again.
    fn end_pauses(&mut self) -> Result<(), String> {
        while let Some(&Reverse((until, number))) = self.pausing.peek() {
            let now = Instant::now();
            if until > now {
                return self.poll.wake_in(until - now).map_err(words);
            }
            self.pausing.pop();
            self.counted.free.push_back(number);
        }
        Ok(())
    }

    /// Ask again what had another answer a moment ago.
    fn ask_again(&mut self) -> Result<(), String> {
        while self.later.front().is_some_and(|each| each.due <= Instant::now()) {
            if let Some(Later { number, flight, .. }) = self.later.pop_front() {
                self.ask(number, flight, &[])?;
            }
        }
        Ok(())
    }

    /// Wait for what disturbers began and goes on by itself: it would disturb what comes next.
    fn see_ends(&mut self) -> Result<(), String> {
        let last = Instant::now() + PATIENCE;
        while (0..self.connections.len()).any(|number| self.lasts(number)) {
            if Instant::now() >= last {
                self.error("a disturber did not end what it had begun");
                let wrong: Vec<_> = self.later.drain(..).map(|each| each.wrong).collect();
                wrong.iter().for_each(|words| self.error(words));
                break;
            }
            for number in self.ready(last)?.into_iter().filter(|&number| number != TIMER) {
                self.serve(number as usize)?;
            }
            self.ask_again()?;
        }
        Ok(())
    }

    /// Whether a disturber is in the middle of such an operation.
    fn lasts(&self, number: usize) -> bool {
        let again = self.later.iter().filter(|each| each.number == number).map(|each| &each.flight);
        let flight = self.connections[number].flight.iter().chain(again).next();
        self.connections[number].disturbs
            && flight.is_some_and(|each| self.plan.disturbing[each.operation].lasts())
    }

    /// Begin to count anew, and say what was counted, where that is asked for.
    fn take_stock(&mut self) {
        let now = Mark::now();
        let mut part = std::mem::replace(&mut self.tally, Tally::of(&self.plan));
        part.lasted = now.at - self.mark.at;
        part.cpu = now.cpu - self.mark.cpu;
        part.starved = now.starved - self.mark.starved;
        self.all.join(&part);
        self.mark = now;
        if self.extent.tells.is_some() {
            let lines: String =
                part.told(&self.plan).lines().map(|line| format!("now {line}\n")).collect();
            print!("{lines}now over\n");
        }
    }

    /// When the next operation should begin, by the clock.
    fn due(&self) -> Option<Instant> {
        let every = self.extent.every?;
        Some(self.started + Duration::from_secs_f64(every * self.counted.begun as f64))
    }

    /// Whether the time is over in which operations may begin.
    fn over(&self, now: Instant) -> bool {
        self.extent.seconds.is_some_and(|s| now >= self.started + Duration::from_secs_f64(s))
    }

    fn all_begun(&self) -> bool {
        self.extent.operations.is_some_and(|wanted| self.counted.begun >= wanted)
    }

    fn finished(&self) -> bool {
        let mut counted = self.connections.iter().filter(|each| !each.disturbs);
        let in_flight = counted.clone().any(|each| each.flight.is_some());
        let now = Instant::now();
        let all = self.all_begun() && self.due().map_or(true, |due| due <= now);
        ((self.over(now) || all) && !in_flight) || counted.all(|each| each.lost)
    }

    /// Begin what should have begun by now, as far as connections are free.
    fn send_due(&mut self, timed: bool) -> Result<(), String> {
        let mut noticed = timed;
        loop {
            let now = Instant::now();
            if self.over(now) {
                return Ok(());
            }
            let due = self.due().unwrap_or(now);
            if due > now {
                return self.poll.wake_in(due - now).map_err(words);
            }
            if self.all_begun() {
                return Ok(());
            }
            let Some(number) = self.counted.free.pop_front() else {
                return Ok(()); // an answer frees one, and this is called again
            };
            let operation = (self.counted.begun % self.plan.counted.len() as u64) as usize;
            self.counted.begun += 1;
            let flight = Flight::new(operation, due, now);
            if self.plan.counted[operation].waits() {
                self.connections[number].flight = Some(flight);
                self.answered(number, 0, None)?;
                continue;
            }
            if noticed {
                self.tally.late.add(now - due);
                noticed = false;
            }
            self.ask(number, flight, &[])?;
        }
    }

    /// Keep all disturbers busy.
    fn disturb(&mut self) -> Result<(), String> {
        while let Some(number) = self.disturbing.free.pop_front() {
            let operation = (self.disturbing.begun % self.plan.disturbing.len() as u64) as usize;
            self.disturbing.begun += 1;
            let now = Instant::now();
            self.ask(number, Flight::new(operation, now, now), &[])?;
        }
        Ok(())
    }

    fn operations(&self, number: usize) -> &[Operation] {
        let disturbs = self.connections[number].disturbs;
        if disturbs {
            &self.plan.disturbing
        } else {
            &self.plan.counted
        }
    }

    fn queue(&mut self, number: usize) -> &mut Queue {
        let disturbs = self.connections[number].disturbs;
        if disturbs {
            &mut self.disturbing
        } else {
            &mut self.counted
        }
    }

    /// Send a flight's step; of a search by pages the one that this cookie stands for.
    fn ask(&mut self, number: usize, mut flight: Flight, cookie: &[u8]) -> Result<(), String> {
        let step = &self.operations(number)[flight.operation].steps[flight.step];
        if step.connects {
            return self.connect(number, flight);
        }
        let nonce = nonce_after(self.nonce);
        let next = self.connections[number].next_id;
        let id = speech::id(number, self.connections.len(), next);
        if flight.name == 0 {
            flight.name = nonce;
        }
        let unsent = speech::message(&Request {
            id,
            body: &step.body,
            place: step.place,
            nonce,
            name: flight.name,
            page: step.page.map(|size| (size, cookie)),
            kept: &flight.kept,
            datagrams: self.doors[0].server.datagrams,
        });
        self.nonce = nonce;
        let made = &mut self.connections[number];
        made.next_id = FIRST_ID + (next - FIRST_ID + 1) % IDS;
        made.unsent = unsent;
        flight.id = id;
        made.flight = Some(flight);
        self.flush(number)
    }

    /// Begin a connection for this flight.
    fn connect(&mut self, number: usize, flight: Flight) -> Result<(), String> {
        let disturbs = self.connections[number].disturbs;
        let link = door(&mut self.doors, disturbs).link(false);
        let made = &mut self.connections[number];
        made.flight = Some(flight);
        made.received.clear();
        match link {
            Ok(link) => {
                self.poll.add(&link.stream, number).map_err(words)?;
                made.link = Some(link);
                self.advance(number)
            }
            Err(words) => Ok(self.close(number, &words)),
        }
    }

    /// Go on with a connection that is not open yet.
    fn advance(&mut self, number: usize) -> Result<(), String> {
        let made = &mut self.connections[number];
        let Some(link) = made.link.as_mut() else { return Ok(()) };
        match door(&mut self.doors, made.disturbs).advance(link) {
            Ok(Wait::Nothing) => {
                self.poll.watch(&link.stream, number, false).map_err(words)?;
                self.answered(number, 0, None)
            }
            Ok(wait) => {
                self.poll.watch(&link.stream, number, wait == Wait::Writable).map_err(words)
            }
            Err(words) => Ok(self.close(number, &words)),
        }
    }

    fn flush(&mut self, number: usize) -> Result<(), String> {
        let made = &mut self.connections[number];
        while let Some(link) = made.link.as_mut().filter(|_| !made.unsent.is_empty()) {
            match link.write(&made.unsent) {
                Ok(0) => return Ok(self.close(number, LOST)),
                Ok(count) => drop(made.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.poll.watch(&link.stream, number, true).map_err(words);
                }
                Err(error) => return Ok(self.close(number, &error.to_string())),
            }
        }
        Ok(())
    }

    /// What a connection is ready for.
    fn serve(&mut self, number: usize) -> Result<(), String> {
        if self.connections[number].link.as_ref().is_some_and(|each| !each.is_open()) {
            return self.advance(number);
        }
        if !self.connections[number].unsent.is_empty() {
            self.flush(number)?;
            let made = &self.connections[number];
            if let Some(link) = made.link.as_ref().filter(|_| made.unsent.is_empty()) {
                self.poll.watch(&link.stream, number, false).map_err(words)?;
            }
        }
        let mut part = [0; 65536];
        while let Some(link) = self.connections[number].link.as_mut() {
            match link.read(&mut part) {
                Ok(0) => self.close(number, LOST),
                Ok(count) => {
                    self.connections[number].received.extend(&part[..count]);
                    if let Err(words) = self.answers(number) {
                        self.close(number, &words);
                    } else if self.connections[number].received.len() > MOST + part.len() {
                        self.close(number, "more bytes than any answer has");
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
    fn answers(&mut self, number: usize) -> Result<(), String> {
        let mut at = 0;
        while let Some(seen) = self.next_answer(number, at)? {
            at = seen.end;
            let made = &mut self.connections[number];
            let Some(flight) = made.flight.as_mut().filter(|each| each.id == seen.id) else {
                return Err("an answer that was not asked for".to_string());
            };
            flight.entries += seen.entries;
            if seen.last {
                flight.kept = seen.kept;
                self.answered(number, seen.result, seen.cookie)?;
            }
        }
        let received = &mut self.connections[number].received;
        received.drain(..at.min(received.len())); // a new connection has none of them
        Ok(())
    }

    /// The answer that begins there, once it is whole.
    fn next_answer(&self, number: usize, at: usize) -> Result<Option<Answer>, String> {
        let made = &self.connections[number];
        let waiting = made.flight.as_ref().map(|flight| Waiting {
            id: flight.id,
            body: &self.operations(number)[flight.operation].steps[flight.step].body,
            kept: &flight.kept,
        });
        speech::answer(&made.received, at, self.doors[0].server.datagrams, waiting)
    }

    /// Go on after an answer: with the next page, the next step, or another operation.
    fn answered(
        &mut self,
        number: usize,
        result: u32,
        cookie: Option<Vec<u8>>,
    ) -> Result<(), String> {
        let made = &mut self.connections[number];
        let mut flight = made.flight.take().expect("it was there");
        let disturbs = made.disturbs;
        let cookie = cookie.filter(|_| result == 0);
        let wrong = self.wrong(number, &flight, result);
        let step = &self.operations(number)[flight.operation].steps[flight.step];
        if let Some(wrong) = wrong.as_ref().filter(|_| step.until && cookie.is_none()) {
            flight.entries = 0;
            let (due, wrong) = (Instant::now() + AGAIN, wrong.clone());
            self.later.push_back(Later { due, number, flight, wrong });
            return Ok(());
        }
        self.tally.disturbances += u64::from(disturbs);
        if let Some(cookie) = cookie {
            return self.ask(number, flight, &cookie);
        }
        let operation = &self.operations(number)[flight.operation];
        let (kind, ends, pause) = (operation.kind, operation.connects(), operation.pause);
        let (name, others) = (operation.steps[flight.step].name, operation.steps.len());
        let now = Instant::now();
        if let Some(name) = name.filter(|_| wrong.is_none() && !disturbs) {
            self.tally.steps[name].add(now - flight.since);
        }
        if wrong.is_none() && flight.step + 1 < others {
            flight.step += 1;
            flight.since = now;
            flight.entries = 0;
            return self.ask(number, flight, &[]);
        }
        let made = &mut self.connections[number];
        if let Some(link) = made.link.take_if(|_| ends) {
            link.end(&speech::goodbye(made.next_id));
        }
        if pause.is_zero() {
            self.queue(number).free.push_back(number);
        } else {
            self.pausing.push(Reverse((now + pause, number)));
        }
        match wrong {
            Some(words) => self.error(&words),
            None if disturbs => {}
            None => {
                self.tally.operations += 1;
                self.tally.times[kind].add(now - flight.due);
                if self.extent.every.is_some() {
                    self.tally.sent[kind].add(now - flight.begun);
                }
            }
        }
        Ok(())
    }

    /// What is wrong with a step's answer.
    fn wrong(&self, number: usize, flight: &Flight, result: u32) -> Option<String> {
        let operation = &self.operations(number)[flight.operation];
        let step = &operation.steps[flight.step];
        let what = if result != step.result {
            format!("result {result} instead of {}", step.result)
        } else {
            let wanted = step.entries.filter(|&wanted| wanted != flight.entries)?;
            format!("{} entries instead of {wanted}", flight.entries)
        };
        let whose = if self.connections[number].disturbs { "disturber, " } else { "" };
        let kind = &self.plan.kinds[operation.kind];
        let several = operation.steps.len() > 1;
        let at = if several { format!(", step {}", flight.step + 1) } else { String::new() };
        Some(format!("{whose}{kind}{at}: {what}"))
    }

    fn close(&mut self, number: usize, words: &str) {
        let made = &mut self.connections[number];
        made.link = None;
        made.lost = true;
        made.flight = None;
        made.unsent.clear();
        self.later.retain(|each| each.number != number);
        self.pausing.retain(|Reverse((_, each))| *each != number);
        self.queue(number).free.retain(|&each| each != number);
        self.error(words);
    }

    fn error(&mut self, words: &str) {
        let errors = &mut self.tally.errors;
        let known = errors.len() < MOST_ERRORS || errors.contains_key(words);
        *errors.entry(if known { words } else { OTHERS }.to_string()).or_insert(0) += 1;
        self.failed += 1;
    }

    fn gives_up(&self) -> bool {
        self.extent.errors.is_some_and(|most| self.failed >= most)
    }

    pub fn tell(&self) {
        print!("{}", self.all.told(&self.plan));
        if let Some([each, addresses, before, after]) = self.doors[0].ports.told() {
            println!("ports {each} addresses {addresses} waiting {before} {after}");
        }
        println!("finished");
    }
}

/// Where connections come from, and how they begin.
struct Doors {
    server: Server,
    context: Option<Context>, // where they are encrypted
    ports: Ports,
}

/// Those of the load's own connections or of its disturbers', which may be the same.
fn door(doors: &mut [Doors], disturbs: bool) -> &mut Doors {
    let place = if disturbs { doors.len() - 1 } else { 0 };
    &mut doors[place]
}

impl Doors {
    fn to(server: Server, first: u8, addresses: Option<u8>) -> Result<Self, String> {
        let encrypted = server.secrecy != Secrecy::None;
        let context = if encrypted { Some(Context::new()?) } else { None };
        let ports = Ports::of(&server, first, addresses);
        Ok(Doors { server, context, ports })
    }

    fn enough_for(&self, connections: u64) -> Result<(), String> {
        let enough = self.ports.left().map_or(true, |left| connections <= left);
        enough.then_some(()).ok_or_else(|| self.ports.short(connections))
    }

    fn link(&mut self, wait: bool) -> Result<Link, String> {
        let from = self.ports.take()?;
        Link::to(&self.server, from, wait).map_err(|error| format!("cannot connect: {error}"))
    }

    fn advance(&self, link: &mut Link) -> Result<Wait, String> {
        let done = link.advance(&self.server, self.context.as_ref(), FIRST_ID);
        done.map_err(|error| format!("cannot connect: {error}"))
    }

    /// A connection on which the first message was sent and had the result 0.
    fn bound(&mut self, first: &[u8]) -> Result<Link, String> {
        let mut link = self.link(true)?;
        link.stream.set_read_timeout(Some(PATIENCE)).map_err(words)?;
        if self.advance(&mut link)? != Wait::Nothing {
            return Err("cannot connect: the server does not answer".to_string());
        }
        if !first.is_empty() {
            introduce(&mut link, first)?;
        }
        link.stream.set_nonblocking(true).map_err(words)?;
        Ok(link)
    }
}

fn introduce(link: &mut Link, body: &[u8]) -> Result<(), String> {
    let first = Request {
        id: 1 + FIRST_ID,
        body,
        place: None,
        nonce: 0,
        name: 0,
        page: None,
        kept: &[],
        datagrams: false,
    };
    link.write_all(&speech::message(&first)).map_err(words)?;
    let (mut received, mut part) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(seen) = speech::answer(&received, 0, false, None)? {
            return match seen.result {
                0 => Ok(()),
                code => Err(format!("the first request of a connection has result {code}")),
            };
        }
        match link.read(&mut part) {
            Ok(0) => return Err(LOST.to_string()),
            Ok(count) => received.extend(&part[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("no answer to a first request: {error}")),
        }
    }
}
