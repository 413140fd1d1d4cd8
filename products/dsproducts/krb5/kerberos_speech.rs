//! How Kerberos' messages are framed, and whose ticket an answer has (RFC 4120).
//!
//! A ticket's nonce can only be read by who has the key, so a connection has one request at a time,
//! and the name in the answer must be the one that asked.

use crate::message::{element, framed, number, Answer, Request, Waiting};

/// Nothing of a message is one: see above.
pub fn id(_connection: usize, _connections: usize, turn: u32) -> u32 {
    turn
}

/// A request with a nonce in its place; over TCP its length comes first.
pub fn message(of: &Request) -> Vec<u8> {
    let length = (of.body.len() as u32).to_be_bytes();
    let mut made = if of.datagrams { vec![] } else { length.to_vec() };
    let begin = made.len();
    made.extend(of.body);
    if let Some(at) = of.place {
        made[begin + at..begin + at + 4].copy_from_slice(&of.nonce.to_be_bytes());
    }
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

/// The answer to a request, once it is whole: its result is 0 or the code of an error.
pub fn answer(
    data: &[u8],
    at: usize,
    datagrams: bool,
    of: Option<Waiting>,
) -> Result<Option<Answer>, String> {
    let Some(Waiting { id, body: asked, .. }) = of else { return Ok(None) };
    let Some((begin, end)) = framed(data, at, if datagrams { 0 } else { 4 }) else {
        return Ok(None);
    };
    if end - begin > MOST {
        return Err(odd());
    }
    let Some(whole) = data.get(..end).filter(|whole| whole.len() > begin) else {
        return Ok(None);
    };
    let (tag, content, _) = inside(whole, begin)?;
    let result = match tag {
        TICKET if part(whole, content, NAME)? == name_of(asked)? => 0,
        TICKET => return Err("a ticket of somebody else".to_string()),
        ERROR => {
            let code = part(whole, content, CODE)?;
            let (_, first, last) = inside(code, 0)?;
            number(&code[first..last])
        }
        _ => return Err(odd()),
    };
    Ok(Some(Answer::only(id, result, end)))
}

/// Who asks.
fn name_of(asked: &[u8]) -> Result<&[u8], String> {
    let (_, request, _) = inside(asked, 0)?;
    part(part(asked, request, BODY)?, 0, ASKED_NAME)
}

/// The content of the part with a tag, of the sequence that begins there.
fn part(data: &[u8], at: usize, wanted: u8) -> Result<&[u8], String> {
    let (_, mut at, end) = inside(data, at)?;
    while at < end {
        let (tag, begin, after) = inside(data, at)?;
        if tag == wanted {
            return Ok(&data[begin..after]);
        }
        at = after;
    }
    Err(odd())
}

/// A tag, where its content begins, and where it ends.
fn inside(data: &[u8], at: usize) -> Result<(u8, usize, usize), String> {
    element(data, at).ok().flatten().ok_or_else(odd)
}

fn odd() -> String {
    "an answer that is not Kerberos".to_string()
}

const MOST: usize = 1 << 20; // bytes of an answer
const TICKET: u8 = 0x6b;
const ERROR: u8 = 0x7e;
// Tags of parts: of an answer, of an error, and of a request.
const NAME: u8 = 0xa4;
const CODE: u8 = 0xa6;
const BODY: u8 = 0xa4;
const ASKED_NAME: u8 = 0xa1;
