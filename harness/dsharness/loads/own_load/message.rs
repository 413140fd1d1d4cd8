//! What a program's speech is asked for and gives back, and how messages of many protocols are framed.
//!
//! A product's file takes the place of `speech.rs`; the programs have all else in common.

#![allow(dead_code)] // no speech needs all of it

/// A step's request: what a speech makes a message of.
pub struct Request<'a> {
    pub id: u32, // what `speech::id` gave
    pub body: &'a [u8],
    pub place: Option<usize>, // in the body, of what differs each time it is sent
    pub nonce: u32,           // that no request of the last minutes had
    pub name: u32,            // of the operation that it is a step of
    pub page: Option<(u32, &'a [u8])>, // its size, and the cookie that it stands for
    pub kept: &'a [u8], // of the answer to the step before it
    pub datagrams: bool,
}

/// The request that waits for its answer on a connection.
pub struct Waiting<'a> {
    pub id: u32,
    pub body: &'a [u8],
    pub kept: &'a [u8], // that it was made with
}

/// One answer: the message's id, its result, the entries that came with it, what it says of a next
/// page, what the next step's request is made with, and whether it is the last one to its request.
pub struct Answer {
    pub id: u32,
    pub result: u32,
    pub entries: u64,
    pub cookie: Option<Vec<u8>>,
    pub kept: Vec<u8>,
    pub last: bool,
    pub end: usize,
}

impl Answer {
    /// The only one to its request, without pages.
    pub fn only(id: u32, result: u32, end: usize) -> Self {
        Answer { id, result, entries: 0, cookie: None, kept: vec![], last: true, end }
    }
}

/// A tag, where its content begins, and where it ends; None while bytes are missing.
pub fn element(data: &[u8], at: usize) -> Result<Option<(u8, usize, usize)>, String> {
    let (Some(&tag), Some(&short)) = (data.get(at), data.get(at + 1)) else {
        return Ok(None);
    };
    let (begin, length) = if short < 0x80 {
        (at + 2, short as usize)
    } else {
        let size = (short & 0x7f) as usize;
        if size == 0 || size > 4 {
            return Err("an answer with a length that nothing has".to_string());
        }
        let Some(digits) = data.get(at + 2..at + 2 + size) else {
            return Ok(None);
        };
        (at + 2 + size, digits.iter().fold(0, |sum, &digit| sum << 8 | digit as usize))
    };
    if length > MOST {
        return Err(format!("an answer of {length} bytes, which is more than {} MiB", MOST >> 20));
    }
    Ok((begin + length <= data.len()).then_some((tag, begin, begin + length)))
}

pub fn number(data: &[u8]) -> u32 {
    data.iter().fold(0, |sum, &digit| sum << 8 | u32::from(digit))
}

/// Where a message begins and ends before which its length stands in so many bytes, none of them for
/// a datagram, which is one message; nothing until its length is there.
pub fn framed(data: &[u8], at: usize, length: usize) -> Option<(usize, usize)> {
    let begin = at + length;
    let size = data.get(at..begin)?;
    Some((begin, if length == 0 { data.len() } else { begin + number(size) as usize }))
}

pub const MOST: usize = 32 << 20; // bytes of an answer: no server makes this program take more memory
