//! Serves the scripted model on loopback: `cargo run -p hangar-models --example serve -- --port 0`.

#![expect(clippy::print_stdout, reason = "it tells its address")]

use std::error::Error;
use std::fs::{self, File};
use std::time::SystemTime;

use hangar_models::scripted::{Script, ServeOptions, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut port = 0;
    let mut options = ServeOptions::new(Script::default(), SystemTime::now);
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let value = args.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--port" => port = value.parse()?,
            "--script" => options.script = Script::parse(&fs::read_to_string(value)?)?,
            "--log" => options.log = Some(File::options().append(true).create(true).open(value)?),
            _ => return Err(format!("unknown option {option}; there are --port, --script and --log").into()),
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    serve(listener, options, CancellationToken::new()).await?;
    Ok(())
}
