//! How LDAP's messages are framed, and pages are asked for (RFC 4511, RFC 2696).

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
pub fn message(id: u32, body: &[&[u8]]) -> Vec<u8> {
    let id = wrapped(INTEGER, &[&id.to_be_bytes()]);
    wrapped(SEQUENCE, &[&[&id[..]], body].concat())
}

/// The controls of a request for the page that a cookie stands for (RFC 2696).
pub fn next_page(size: u32, cookie: &[u8]) -> Vec<u8> {
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
pub fn element(data: &[u8], at: usize) -> Result<Option<(u8, usize, usize)>, String> {
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
    if length > MOST {
        return Err(format!("an answer of {length} bytes, which is more than {} MiB", MOST >> 20));
    }
    Ok((begin + length <= data.len()).then_some((tag, begin, begin + length)))
}

/// One answer: the message's id, the tag of its operation, its result where it has one, the entries
/// that came with it, and what it says of a next page.
pub struct Answer {
    pub id: u32,
    pub tag: u8,
    pub result: u32,
    pub entries: u64,
    pub cookie: Option<Vec<u8>>,
    pub end: usize,
}

fn odd() -> String {
    "an answer that is not LDAP".to_string()
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

pub fn answer(data: &[u8], at: usize) -> Result<Option<Answer>, String> {
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
    Ok(Some(Answer { id, tag, result, entries, cookie: next, end }))
}

impl Answer {
    /// One without pages or controls.
    pub fn plain(id: u32, tag: u8, result: u32, end: usize) -> Self {
        Answer { id, tag, result, entries: 0, cookie: None, end }
    }
}

/// Bodies of two requests: to encrypt what follows (RFC 4511, 4.14), and to end a connection.
pub const START_TLS: &[u8] = b"\x77\x18\x80\x161.3.6.1.4.1.1466.20037";
pub const UNBIND: &[u8] = b"\x42\x00";
pub const MOST: usize = 32 << 20; // bytes of an answer: no server makes this program take more memory
const PAGES: &[u8] = b"1.2.840.113556.1.4.319";
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
const CONTROLS: u8 = 0xa0;
pub const ENTRY: u8 = 0x64;
pub const REFERENCE: u8 = 0x73;
pub const INTERMEDIATE: u8 = 0x79;
