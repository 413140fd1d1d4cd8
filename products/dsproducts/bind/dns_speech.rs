//! How DNS' messages are framed, and which query an answer is for (RFC 1035).

use crate::message::{framed, number, Answer, Request, Waiting};

/// An id that no other connection has: each has its own share of them, and takes those in turn.
pub fn id(connection: usize, connections: usize, turn: u32) -> u32 {
    let share = (IDS / connections as u32).max(1);
    (connection as u32 * share + turn % share) % IDS
}

/// A query with its id; over TCP its length comes first.
pub fn message(of: &Request) -> Vec<u8> {
    let length = (of.body.len() as u16).to_be_bytes();
    let mut made = if of.datagrams { vec![] } else { length.to_vec() };
    made.extend((of.id as u16).to_be_bytes());
    made.extend(&of.body[2..]);
    made
}

/// A connection is not encrypted.
pub fn may_encrypt(_id: u32) -> Option<Vec<u8>> {
    None
}

/// A connection ends without a word.
pub fn goodbye(_id: u32) -> Vec<u8> {
    vec![]
}

/// The answer to a query, once it is whole: its result is its code, its entries are its records.
pub fn answer(
    data: &[u8],
    at: usize,
    datagrams: bool,
    of: Option<Waiting>,
) -> Result<Option<Answer>, String> {
    let Some(Waiting { body: asked, .. }) = of else { return Ok(None) };
    let Some((begin, end)) = framed(data, at, if datagrams { 0 } else { 2 }) else {
        return Ok(None);
    };
    let Some(whole) = data.get(begin..end).filter(|_| data.len() > at) else {
        return Ok(None);
    };
    let Some((header, rest)) = whole.split_at_checked(HEADER) else { return Err(odd()) };
    let (code, questions) = (header[3] & 0x0f, &header[4..6]);
    if header[2] & ANSWERS == 0 {
        return Err(odd());
    }
    // A server that could not read a query has nothing to repeat of it.
    let unread = code != 0 && questions == [0, 0];
    if !unread && (questions != &asked[4..6] || !rest.starts_with(&asked[HEADER..])) {
        return Err("an answer to another question".to_string());
    }
    let mut seen = Answer::only(number(&header[..2]), u32::from(code), end);
    seen.entries = u64::from(number(&header[6..8]));
    Ok(Some(seen))
}

fn odd() -> String {
    "an answer that is not DNS".to_string()
}

const HEADER: usize = 12; // bytes; the id is the first two
const IDS: u32 = 1 << 16;
const ANSWERS: u8 = 0x80; // what a query has not
