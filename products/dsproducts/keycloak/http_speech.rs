//! How HTTP's messages are framed (RFC 9112), and what of an answer the next request needs.
//!
//! A step's body begins with a line of its own: the text that must stand in the answer, a tab, and
//! the characters before which what follows that text ends. It is found there for the next request,
//! which has it in place of `{found}`, and in place of `{cookies}` those of all answers so far.

use crate::message::{Answer, Request, Waiting, MOST};

/// Nothing of a message is one: a connection has one request at a time.
pub fn id(_connection: usize, _connections: usize, turn: u32) -> u32 {
    turn
}

/// A request with what earlier answers brought, and the length of its content.
pub fn message(of: &Request) -> Vec<u8> {
    let (_, request) = parted(of.body, b"\n");
    let (found, cookies) = parted(of.kept, b"\n");
    let filled = replaced(&replaced(request, b"{found}", found), b"{cookies}", cookies);
    let (head, content) = parted(&filled, END);
    let mut made = head.to_vec();
    if !content.is_empty() {
        made.extend(format!("\r\nContent-Length: {}", content.len()).bytes());
    }
    made.extend(END);
    made.extend(content);
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

/// The answer to a request, once it is whole: its result is the status, and it has one entry if the
/// text stands in it that must.
pub fn answer(
    data: &[u8],
    at: usize,
    _datagrams: bool,
    of: Option<Waiting>,
) -> Result<Option<Answer>, String> {
    let Some(Waiting { id, body: asked, kept }) = of else { return Ok(None) };
    let Some(size) = place(&data[at..], END) else {
        return if data.len() - at > MOST_HEAD { Err(odd()) } else { Ok(None) };
    };
    let (head, begin) = (&data[at..at + size], at + size + END.len());
    let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let status = lines.next().and_then(status_in).ok_or_else(odd)?;
    let (mut length, mut chunked) = (0, false);
    let mut cookies = Cookies::of(parted(kept, b"\n").1);
    for line in lines {
        let (name, value) = parted(line, b":");
        let value = value.trim_ascii();
        match name.to_ascii_lowercase().as_slice() {
            b"content-length" => length = number(value, 10)?,
            b"transfer-encoding" => chunked = value.eq_ignore_ascii_case(b"chunked"),
            b"set-cookie" => cookies.set(parted(value, b";").0),
            _ => {}
        }
    }
    let mut text = head.to_vec();
    text.extend(END);
    let whole = if chunked {
        chunks(data, begin, &mut text)?
    } else {
        data.get(begin..begin + length).map(|content| {
            text.extend(content);
            begin + length
        })
    };
    let Some(end) = whole else { return Ok(None) };
    let found = found_in(&text, parted(asked, b"\n").0);
    let mut seen = Answer::only(id, status, end);
    seen.entries = u64::from(found.is_some());
    seen.kept = [found.unwrap_or_default().as_slice(), b"\n", &cookies.text()].concat();
    Ok(Some(seen))
}

/// `HTTP/1.1 302 Found` is 302.
fn status_in(line: &[u8]) -> Option<u32> {
    let (_, rest) = line.starts_with(b"HTTP/1.").then(|| parted(line, b" "))?;
    let digits = std::str::from_utf8(parted(rest, b" ").0).ok()?;
    digits.parse().ok().filter(|status| (200..600).contains(status))
}

/// Take chunks up to the last one; where they end, unless some are missing.
fn chunks(data: &[u8], mut at: usize, text: &mut Vec<u8>) -> Result<Option<usize>, String> {
    loop {
        let rest = data.get(at..).unwrap_or_default();
        let Some(line) = place(rest, LINE) else {
            return if rest.len() > MOST_LINE { Err(odd()) } else { Ok(None) };
        };
        let size = number(parted(&rest[..line], b";").0.trim_ascii(), 16)?;
        let begin = at + line + LINE.len();
        let end = begin + size;
        let Some(after) = data.get(end..end + LINE.len()) else { return Ok(None) };
        if after != LINE {
            return Err(odd());
        }
        text.extend(&data[begin..end]);
        if size == 0 {
            return Ok(Some(end + LINE.len()));
        }
        at = end + LINE.len();
    }
}

/// A length, which no answer has more of than this program takes.
fn number(digits: &[u8], radix: u32) -> Result<usize, String> {
    let text = std::str::from_utf8(digits).map_err(|_| odd())?;
    let number = usize::from_str_radix(text, radix).map_err(|_| odd())?;
    if number > MOST {
        return Err(format!("an answer of {number} bytes, which is more than {} MiB", MOST >> 20));
    }
    Ok(number)
}

/// What follows a text, up to one of the characters that end it; a request's line takes it as it is.
fn found_in(text: &[u8], wanted: &[u8]) -> Option<Vec<u8>> {
    let (after, ends) = parted(wanted, b"\t");
    let rest = &text[place(text, after)? + after.len()..];
    if ends.is_empty() {
        return Some(vec![]);
    }
    let size = rest.iter().position(|byte| ends.contains(byte))?;
    let found = replaced(&rest[..size], b"&amp;", b"&");
    (!found.is_empty() && found.iter().all(u8::is_ascii_graphic)).then_some(found)
}

/// Those of one user, as a browser has them.
struct Cookies<'a>(Vec<(&'a [u8], &'a [u8])>);

impl<'a> Cookies<'a> {
    fn of(text: &'a [u8]) -> Self {
        let mut made = Cookies(vec![]);
        text.split(|&byte| byte == b';').for_each(|pair| made.set(pair));
        made
    }

    /// A later one of the same name takes its place, and one without a value takes it away.
    fn set(&mut self, pair: &'a [u8]) {
        let (name, value) = parted(pair.trim_ascii(), b"=");
        self.0.retain(|&(other, _)| other != name);
        if !name.is_empty() && !value.is_empty() {
            self.0.push((name, value));
        }
    }

    fn text(&self) -> Vec<u8> {
        let pairs: Vec<_> = self.0.iter().map(|&(name, value)| [name, b"=", value].concat()).collect();
        pairs.join(b"; ".as_slice())
    }
}

/// What stands before a text, and what follows it; all of it, and nothing, where it is not there.
fn parted<'a>(text: &'a [u8], by: &[u8]) -> (&'a [u8], &'a [u8]) {
    place(text, by).map_or((text, &[]), |at| (&text[..at], &text[at + by.len()..]))
}

fn place(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len().max(1)).position(|part| part == wanted)
}

fn replaced(text: &[u8], name: &[u8], value: &[u8]) -> Vec<u8> {
    let (mut made, mut rest) = (vec![], text);
    while let Some(at) = place(rest, name) {
        made.extend(&rest[..at]);
        made.extend(value);
        rest = &rest[at + name.len()..];
    }
    made.extend(rest);
    made
}

fn odd() -> String {
    "an answer that is not HTTP".to_string()
}

const END: &[u8] = b"\r\n\r\n";
const LINE: &[u8] = b"\r\n";
const MOST_HEAD: usize = 64 << 10;
const MOST_LINE: usize = 100; // of a chunk's size
