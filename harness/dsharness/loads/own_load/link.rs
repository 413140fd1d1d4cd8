//! A connection from its first packet to its last: reached, encrypted where it is to be, closed.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsRawFd;

use crate::socket::{Place, Secrecy, Server};
use crate::speech;
use crate::tls::{Context, Session};

/// What a connection waits for.
#[derive(PartialEq)]
pub enum Wait {
    Nothing, // it is open
    Readable,
    Writable,
}

enum Stage {
    Reaching,
    Asking(Vec<u8>), // whether it may be encrypted; what was received so far
    Agreeing,
    Open,
}

pub struct Link {
    pub stream: TcpStream,
    session: Option<Session>,
    stage: Stage,
}

impl Link {
    /// One that is not open yet, unless `wait` says so: then each step waits for the server.
    pub fn to(server: &Server, from: Option<Ipv4Addr>, wait: bool) -> io::Result<Self> {
        let stream = server.reach(from, wait)?;
        Ok(Link { stream, session: None, stage: Stage::Reaching })
    }

    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    /// Go on opening it, as far as the server has answered.
    pub fn advance(&mut self, server: &Server, context: Option<&Context>, id: u32) -> io::Result<Wait> {
        loop {
            match self.step(server, context, id) {
                Ok(()) if self.is_open() => return Ok(Wait::Nothing),
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let writes = self.session.as_ref().is_some_and(|each| each.writes);
                    return Ok(if writes { Wait::Writable } else { Wait::Readable });
                }
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(Wait::Writable),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn step(&mut self, server: &Server, context: Option<&Context>, id: u32) -> io::Result<()> {
        match &mut self.stage {
            Stage::Reaching => {
                if let Some(error) = self.stream.take_error()? {
                    return Err(error);
                }
                if matches!(server.place, Place::Inet(_)) {
                    self.stream.peer_addr()?;
                }
                match server.secrecy {
                    Secrecy::None => self.stage = Stage::Open,
                    Secrecy::AtOnce => self.agree(context)?,
                    Secrecy::Asked => {
                        self.stream.write_all(&speech::may_encrypt(id).unwrap_or_default())?;
                        self.stage = Stage::Asking(Vec::new());
                    }
                }
            }
            Stage::Asking(received) => {
                let mut part = [0; 512];
                let count = self.stream.read(&mut part)?;
                received.extend(&part[..count]);
                let other = |words: String| io::Error::new(ErrorKind::Other, words);
                match speech::answer(received, 0, false, None).map_err(other)? {
                    Some(seen) if seen.result == 0 => self.agree(context)?,
                    Some(seen) => return Err(other(format!("StartTLS has result {}", seen.result))),
                    None if count == 0 => return Err(ErrorKind::UnexpectedEof.into()),
                    None => {}
                }
            }
            Stage::Agreeing => {
                self.session.as_mut().expect("it was made").begin()?;
                self.stage = Stage::Open;
            }
            Stage::Open => {}
        }
        Ok(())
    }

    fn agree(&mut self, context: Option<&Context>) -> io::Result<()> {
        let context = context.expect("there is one where anything is encrypted");
        self.session = Some(context.session(self.stream.as_raw_fd())?);
        self.stage = Stage::Agreeing;
        Ok(())
    }

    /// Say goodbye and close it, without waiting for anything.
    pub fn end(mut self, goodbye: &[u8]) {
        let _ = self.write(goodbye);
        if let Some(session) = &mut self.session {
            session.end();
        }
    }
}

impl Read for Link {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        match &mut self.session {
            Some(session) => session.read(data),
            None => self.stream.read(data),
        }
    }
}

impl Write for Link {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.session {
            Some(session) => session.write(data),
            None => self.stream.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
