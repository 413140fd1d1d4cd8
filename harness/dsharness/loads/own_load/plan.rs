//! What is asked for: the file of requests.

use std::fs;
use std::str::FromStr;
use std::time::Duration;

const DISTURBERS: &str = "disturbers"; // begins a line: those after it are theirs; then where they go
const PLACE: &str = "........"; // begins in a request what differs each time it is sent; the speech says how
const UNTIL: &str = "until-"; // begins the number of entries of a step that is asked until its answer is right
const CONNECT: &str = "connect"; // in place of bytes

/// A message that waits for its answer; the bytes are all that follows the message id, but for the
/// control that asks for pages. Without bytes nothing is sent: time passes. Or a new connection takes
/// the place of the old one, and is open.
pub struct Step {
    pub name: Option<usize>, // that its time is told by
    pub connects: bool,
    pub result: u32,
    pub entries: Option<u64>,
    pub until: bool, // with another answer it is asked again
    pub page: Option<u32>,
    pub body: Vec<u8>,
    pub place: Option<usize>, // of what differs in the body each time
}

/// One line of the file: `KIND` and for each step `RESULT ENTRIES PAGE HEX`. Steps follow each other
/// on one connection; together they are counted and timed once. After its kind may stand `@` and the
/// microseconds for which its connection pauses then; or `/` and a name for each step, between
/// commas, by which its time is told alone.
pub struct Operation {
    pub kind: usize,
    pub pause: Duration,
    pub steps: Vec<Step>,
}

impl Operation {
    /// Whether it has a connection of its own, which ends with it.
    pub fn connects(&self) -> bool {
        self.steps[0].connects
    }

    /// Whether it goes on by itself once it was begun.
    pub fn lasts(&self) -> bool {
        self.steps.iter().any(|each| each.until)
    }

    pub fn waits(&self) -> bool {
        !self.connects() && self.steps[0].body.is_empty()
    }
}

pub struct Plan {
    pub kinds: Vec<String>,
    pub step_names: Vec<String>,
    pub first: Vec<u8>, // sent once on each connection; empty: nothing is
    pub counted: Vec<Operation>,
    pub disturbing: Vec<Operation>,
    pub disturbed_at: Option<String>, // None: where the load's own connections go
}

pub fn read(file: &str) -> Result<Plan, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut plan = Plan {
        kinds: vec![],
        step_names: vec![],
        first: vec![],
        counted: vec![],
        disturbing: vec![],
        disturbed_at: None,
    };
    let mut disturbs = false;
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("{file}:{}: {what}", number + 1);
        let parts: Vec<&str> = line.split(' ').collect();
        if parts[0] == DISTURBERS {
            disturbs = true;
            plan.disturbed_at = parts.get(1).map(|url| url.to_string());
            continue;
        }
        if parts.len() < 5 || parts.len() % 4 != 1 {
            return Err(wrong("not KIND and for each step RESULT ENTRIES PAGE HEX"));
        }
        let steps = parts[1..].chunks(4).map(step).collect::<Result<Vec<_>, _>>();
        let mut steps = steps.map_err(wrong)?;
        if parts[0] == "first" {
            plan.first = steps.remove(0).body;
            continue;
        }
        let (kind, names) = parts[0].split_once('/').unwrap_or((parts[0], ""));
        let (kind, pause) = kind.split_once('@').unwrap_or((kind, "0"));
        for (step, name) in steps.iter_mut().zip(names.split(',').filter(|name| !name.is_empty())) {
            step.name = Some(place(&mut plan.step_names, name));
        }
        let pause = pause.parse().map(Duration::from_micros).map_err(|_| wrong("no pause"))?;
        let operation = Operation { kind: place(&mut plan.kinds, kind), pause, steps };
        if disturbs { &mut plan.disturbing } else { &mut plan.counted }.push(operation);
    }
    if plan.counted.is_empty() {
        return Err(format!("{file}: no request"));
    }
    Ok(plan)
}

fn place(kinds: &mut Vec<String>, kind: &str) -> usize {
    kinds.iter().position(|each| each == kind).unwrap_or_else(|| {
        kinds.push(kind.to_string());
        kinds.len() - 1
    })
}

fn step(parts: &[&str]) -> Result<Step, &'static str> {
    let connects = parts[3] == CONNECT;
    let hex = parts[3].replace('.', "0");
    let (until, entries) = match parts[1].strip_prefix(UNTIL) {
        Some(entries) => (true, entries),
        None => (false, parts[1]),
    };
    Ok(Step {
        name: None,
        connects,
        result: parts[0].parse().map_err(|_| "no result code")?,
        entries: unless_dash(entries).map_err(|_| "no number of entries")?,
        until,
        page: unless_dash(parts[2]).map_err(|_| "no size of a page")?,
        body: bytes(if connects { "" } else { &hex }).ok_or("no hexadecimal bytes")?,
        place: parts[3].find(PLACE).map(|at| at / 2),
    })
}

fn unless_dash<T: FromStr>(text: &str) -> Result<Option<T>, T::Err> {
    if text == "-" {
        Ok(None)
    } else {
        text.parse().map(Some)
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if hex.len() % 2 != 0 || !hex.is_ascii() {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}
