//! How LDAP's messages are framed, and pages are asked for (RFC 4511, RFC 2696).

use std::borrow::Cow;

use crate::message::{element, number, Answer, Request, Waiting};

/// Each connection counts its own.
pub fn id(_connection: usize, _connections: usize, turn: u32) -> u32 {
    turn
}

/// A request with its name in its place, and the control that asks for a page.
pub fn message(of: &Request) -> Vec<u8> {
    let mut body = Cow::Borrowed(of.body);
    if let Some(at) = of.place {
        body.to_mut()[at..at + 8].copy_from_slice(format!("{:08x}", of.name).as_bytes());
    }
    let controls = of.page.map(|(size, cookie)| next_page(size, cookie)).unwrap_or_default();
    framed(of.id, &[&body, &controls])
}

/// What asks whether the connection may be encrypted (RFC 4511, 4.14).
pub fn may_encrypt(id: u32) -> Option<Vec<u8>> {
    Some(framed(id, &[START_TLS]))
}

/// What ends a connection.
pub fn goodbye(id: u32) -> Vec<u8> {
    framed(id, &[UNBIND])
}

/// The answer that begins there, once it is whole, whatever was asked.
pub fn answer(
    data: &[u8],
    at: usize,
    _datagrams: bool,
    _of: Option<Waiting>,
) -> Result<Option<Answer>, String> {
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
    let (id, entries) = (number(&whole[id_begin..id_end]), u64::from(tag == ENTRY));
    let last = !matches!(tag, ENTRY | REFERENCE | INTERMEDIATE);
    Ok(Some(Answer { id, result, entries, cookie: next, kept: vec![], last, end }))
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
fn framed(id: u32, body: &[&[u8]]) -> Vec<u8> {
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

fn odd() -> String {
    "an answer that is not LDAP".to_string()
}

const START_TLS: &[u8] = b"\x77\x18\x80\x161.3.6.1.4.1.1466.20037";
const UNBIND: &[u8] = b"\x42\x00";
const PAGES: &[u8] = b"1.2.840.113556.1.4.319";
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
const CONTROLS: u8 = 0xa0;
const ENTRY: u8 = 0x64;
const REFERENCE: u8 = 0x73;
const INTERMEDIATE: u8 = 0x79;
