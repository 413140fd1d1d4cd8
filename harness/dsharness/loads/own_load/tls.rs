//! Encryption by the system's OpenSSL. The server's certificate is not verified: what is measured is
//! the server, on a network that reaches nobody else.

use std::ffi::{c_char, c_int, c_long, c_ulong, c_void, CStr};
use std::io::{self, ErrorKind};
use std::ptr::null_mut;

#[link(name = "libssl.so.3", kind = "dylib", modifiers = "+verbatim")]
extern "C" {
    fn TLS_client_method() -> *const c_void;
    fn SSL_CTX_new(method: *const c_void) -> *mut c_void;
    fn SSL_CTX_ctrl(context: *mut c_void, what: c_int, number: c_long, more: *mut c_void) -> c_long;
    fn SSL_new(context: *mut c_void) -> *mut c_void;
    fn SSL_free(session: *mut c_void);
    fn SSL_set_fd(session: *mut c_void, fd: c_int) -> c_int;
    fn SSL_connect(session: *mut c_void) -> c_int;
    fn SSL_read(session: *mut c_void, data: *mut u8, size: c_int) -> c_int;
    fn SSL_write(session: *mut c_void, data: *const u8, size: c_int) -> c_int;
    fn SSL_shutdown(session: *mut c_void) -> c_int;
    fn SSL_get_error(session: *const c_void, status: c_int) -> c_int;
}

#[link(name = "libcrypto.so.3", kind = "dylib", modifiers = "+verbatim")]
extern "C" {
    fn ERR_clear_error();
    fn ERR_get_error() -> c_ulong;
    fn ERR_error_string_n(code: c_ulong, words: *mut c_char, size: usize);
}

const SET_MODE: c_int = 33;
const PARTIAL_WRITES: c_long = 1;
const MOVING_BUFFER: c_long = 2; // the rest of a message may be elsewhere when it is written
const WANT_READ: c_int = 2;
const WANT_WRITE: c_int = 3;
const OF_SYSTEM: c_int = 5;
const CLOSED: c_int = 6;

/// What all encrypted connections of a load share. No session is taken up again.
pub struct Context(*mut c_void);

impl Context {
    pub fn new() -> Result<Self, String> {
        // SAFETY: the context lives as long as the program; a failure is noticed by its address.
        let made = unsafe {
            let made = SSL_CTX_new(TLS_client_method());
            if !made.is_null() {
                SSL_CTX_ctrl(made, SET_MODE, PARTIAL_WRITES | MOVING_BUFFER, null_mut());
            }
            made
        };
        if made.is_null() {
            return Err(format!("OpenSSL: {}", reason()));
        }
        Ok(Context(made))
    }

    /// A connection's encryption, which has not begun.
    pub fn session(&self, fd: i32) -> io::Result<Session> {
        // SAFETY: the context is alive; the descriptor is only kept, as a number.
        let made = unsafe { SSL_new(self.0) };
        if made.is_null() || unsafe { SSL_set_fd(made, fd) } != 1 {
            return Err(io::Error::new(ErrorKind::Other, reason()));
        }
        Ok(Session { ssl: made, writes: false })
    }
}

pub struct Session {
    ssl: *mut c_void,
    pub writes: bool, // whether it waits until it can write, not until it can read
}

impl Session {
    /// Agree on keys; `WouldBlock` while the server's part is missing.
    pub fn begin(&mut self) -> io::Result<()> {
        // SAFETY: the session is alive; likewise below, where a slice is as long as is said.
        self.done(|ssl| unsafe { SSL_connect(ssl) }).map(drop)
    }

    pub fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let size = data.len().min(c_int::MAX as usize) as c_int;
        self.done(|ssl| unsafe { SSL_read(ssl, data.as_mut_ptr(), size) })
    }

    pub fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let size = data.len().min(c_int::MAX as usize) as c_int;
        self.done(|ssl| unsafe { SSL_write(ssl, data.as_ptr(), size) })
    }

    /// Say that nothing follows.
    pub fn end(&mut self) {
        let _ = self.done(|ssl| unsafe { SSL_shutdown(ssl) });
    }

    fn done(&mut self, act: impl FnOnce(*mut c_void) -> c_int) -> io::Result<usize> {
        // SAFETY: this thread's list of errors.
        unsafe { ERR_clear_error() };
        let status = act(self.ssl);
        if status > 0 {
            return Ok(status as usize);
        }
        let system = io::Error::last_os_error();
        // SAFETY: the session is alive.
        let why = unsafe { SSL_get_error(self.ssl, status) };
        self.writes = why == WANT_WRITE;
        match why {
            CLOSED => Ok(0),
            WANT_READ | WANT_WRITE => Err(ErrorKind::WouldBlock.into()),
            OF_SYSTEM if system.raw_os_error().is_some_and(|code| code != 0) => Err(system),
            _ => Err(io::Error::new(ErrorKind::Other, reason())),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: it was made by SSL_new and is freed once.
        unsafe { SSL_free(self.ssl) };
    }
}

fn reason() -> String {
    let mut words = [0; 256];
    // SAFETY: OpenSSL writes at most so many bytes, with a zero at their end.
    unsafe {
        ERR_error_string_n(ERR_get_error(), words.as_mut_ptr(), words.len());
        CStr::from_ptr(words.as_ptr()).to_string_lossy().into_owned()
    }
}
