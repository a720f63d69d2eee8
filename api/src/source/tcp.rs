//! [`TcpSource`]: lines from a socket, for demonstrations.

use std::fmt::Display;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use element::{BATCH_RECORDS, Batch};

use super::bad_record::{BadRecord, OnBadRecord};
use super::reader::put_aside;
use crate::{
    Boundedness, ReaderContext, ReaderPoll, Source, SourceReader, SplitEnumerator, StaticSplits,
};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Between two looks at a silent socket, in milliseconds.
const LOOK_AGAIN: i64 = 2;

/// Why a socket cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TcpError {
    /// Nobody answers, or the address cannot be resolved.
    #[error("cannot connect to `{address}`")]
    Connect {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The connection broke.
    #[error("cannot read from `{address}` behind line {line}")]
    Read {
        /// The address.
        address: String,
        /// Lines read.
        line: u64,
        /// Why.
        source: io::Error,
    },
}

/// Lines that a server sends, each made a `T` by [`FromStr`]; a `String` is the line as it is. For
/// demonstrations: one subtask connects, and what the server has sent before a failure is not sent again.
///
/// Never ends, unless the server closes the connection. A line ends at LF or CR LF.
///
/// ```no_run
/// use slackwater::{TcpSource, prelude::*};
///
/// let env = StreamExecutionEnvironment::new();
/// let source = TcpSource::<String>::new("localhost:7000");
/// env.from_source(source, WatermarkStrategy::none(), "lines").print();
/// ```
pub struct TcpSource<T> {
    address: String,
    on_bad_record: OnBadRecord,
    records: PhantomData<fn() -> T>,
}

impl<T: FromStr<Err: Display> + Send + 'static> TcpSource<T> {
    /// Lines from a server at `address`: a host's name or number, a colon, and a port.
    pub fn new(address: impl Into<String>) -> Self {
        let on_bad_record = OnBadRecord::default();
        Self { address: address.into(), on_bad_record, records: PhantomData }
    }

    /// What to do about a line that is no `T` (by default the job fails).
    #[must_use]
    pub fn on_bad_record(mut self, policy: OnBadRecord) -> Self {
        self.on_bad_record = policy;
        self
    }
}

impl<T: FromStr<Err: Display> + Send + 'static> Source for TcpSource<T> {
    type Item = T;
    type Split = String;

    fn boundedness(&self) -> Boundedness {
        Boundedness::Unbounded
    }

    fn enumerator(
        &self,
        restored: Option<&[u8]>,
    ) -> anyhow::Result<Box<dyn SplitEnumerator<String>>> {
        Ok(Box::new(StaticSplits::new([self.address.clone()], restored)?))
    }

    fn reader(&self, context: &ReaderContext) -> anyhow::Result<Box<dyn SourceReader<T, String>>> {
        Ok(Box::new(TcpReader {
            on_bad_record: self.on_bad_record.clone(),
            context: context.clone(),
            addresses: Vec::new(),
            socket: None,
            pending: Vec::new(),
            lines: 0,
            records: PhantomData,
        }))
    }
}

struct TcpReader<T> {
    on_bad_record: OnBadRecord,
    context: ReaderContext,
    addresses: Vec<String>,
    socket: Option<TcpStream>,
    /// Bytes behind the last line.
    pending: Vec<u8>,
    lines: u64,
    records: PhantomData<fn() -> T>,
}

fn connect(address: &str) -> Result<TcpStream, TcpError> {
    let connect = || {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for target in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&target, CONNECT_TIMEOUT) {
                Ok(socket) => {
                    socket.set_nonblocking(true)?;
                    return Ok(socket);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    };
    connect().map_err(|source| TcpError::Connect { address: address.to_owned(), source })
}

/// What a look at the socket found.
enum Look {
    Bytes,
    Silence,
    End,
}

impl<T: FromStr<Err: Display>> TcpReader<T> {
    fn look(&mut self, address: &str) -> Result<Look, TcpError> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => connect(address)?,
        };
        let socket = self.socket.insert(socket);
        let mut chunk = [0; 16 << 10];
        match socket.read(&mut chunk) {
            Ok(0) => Ok(Look::End),
            Ok(read) => {
                self.pending.extend_from_slice(chunk.get(..read).unwrap_or_default());
                Ok(Look::Bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Look::Bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Look::Silence),
            Err(source) => {
                Err(TcpError::Read { address: address.to_owned(), line: self.lines, source })
            }
        }
    }

    /// Takes whole lines off what is pending, and at the end of the stream the last one without its end.
    fn take_lines(&mut self, address: &str, last: Look) -> anyhow::Result<Batch<T>> {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        let mut values = Vec::new();
        while values.len() < BATCH_RECORDS {
            let Some(end) = memchr::memchr(b'\n', rest) else { break };
            let (line, tail) = rest.split_at(end);
            rest = tail.get(1..).unwrap_or_default();
            values.extend(self.record(address, line.strip_suffix(b"\r").unwrap_or(line))?);
        }
        if matches!(last, Look::End) && memchr::memchr(b'\n', rest).is_none() && !rest.is_empty() {
            values.extend(self.record(address, rest)?);
            rest = &[];
        }
        self.pending = rest.to_vec();
        Ok(Batch::unstamped(values))
    }

    fn record(&mut self, address: &str, line: &[u8]) -> anyhow::Result<Option<T>> {
        self.lines += 1;
        let parsed = match std::str::from_utf8(line) {
            Ok(text) => text.parse().map_err(|error: T::Err| error.to_string()),
            Err(_) => Err("the line is not UTF-8".to_owned()),
        };
        match parsed {
            Ok(record) => Ok(Some(record)),
            Err(reason) => {
                let text = String::from_utf8_lossy(line).into_owned();
                let file = format!("tcp://{address}");
                let record = BadRecord { file, line: self.lines, column: None, reason, text };
                put_aside(record, &self.on_bad_record, &self.context)?;
                Ok(None)
            }
        }
    }
}

impl<T: FromStr<Err: Display> + Send> SourceReader<T, String> for TcpReader<T> {
    fn add_split(&mut self, split: String) {
        self.addresses.push(split);
    }

    fn poll(&mut self) -> anyhow::Result<ReaderPoll<T>> {
        let Some(address) = self.addresses.first().cloned() else {
            return Ok(ReaderPoll::NeedSplit);
        };
        let look = self.look(&address)?;
        let is_over = matches!(look, Look::End);
        if matches!(look, Look::Silence) && self.pending.is_empty() {
            let next = self.context.clock.now().saturating_add(LOOK_AGAIN);
            return Ok(ReaderPoll::Later(Some(next)));
        }
        let is_silent = matches!(look, Look::Silence);
        let batch = self.take_lines(&address, look)?;
        if is_over && self.pending.is_empty() {
            self.socket = None;
            self.addresses.remove(0);
        }
        if is_silent && batch.is_empty() {
            let next = self.context.clock.now().saturating_add(LOOK_AGAIN);
            return Ok(ReaderPoll::Later(Some(next)));
        }
        Ok(ReaderPoll::Batch(batch))
    }

    fn snapshot(&mut self) -> Vec<String> {
        self.addresses.clone()
    }
}
