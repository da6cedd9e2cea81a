// SPDX-License-Identifier: Apache-2.0
//! fs::copy, io::copy, threads with channels, a child process, a socket.
use std::io::{Read, Write};
use std::{fs, io, net, process, sync::mpsc, thread};

fn copies() -> io::Result<()> {
    fs::write("from", vec![b'c'; 3 << 20])?;
    println!("fs::copy {}", fs::copy("from", "to")?);
    let mut from = fs::File::open("from")?;
    let mut to = fs::File::create("again")?;
    println!("io::copy {}", io::copy(&mut from, &mut to)?);
    println!("same {}", fs::read("to")? == fs::read("again")?);
    fs::rename("to", "moved")?;
    fs::create_dir_all("x/y")?;
    println!("entries {}", fs::read_dir("x")?.count());
    Ok(())
}

fn threads() {
    let (sender, receiver) = mpsc::channel();
    let all: Vec<_> = (0..8u64)
        .map(|i| {
            let sender = sender.clone();
            thread::spawn(move || sender.send((0..=i * 1000).sum::<u64>()).unwrap())
        })
        .collect();
    drop(sender);
    for one in all {
        one.join().unwrap();
    }
    println!("threads {}", receiver.iter().sum::<u64>());
}

fn socket() -> io::Result<()> {
    let listener = net::TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = thread::spawn(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
    let mut text = String::new();
    net::TcpStream::connect(address)?.read_to_string(&mut text)?;
    server.join().unwrap();
    println!("socket {text}");
    Ok(())
}

fn main() -> io::Result<()> {
    copies()?;
    threads();
    socket()?;
    let out = process::Command::new("echo").arg("went well").output()?;
    print!("child {}", String::from_utf8_lossy(&out.stdout));
    println!("panic {}", thread::spawn(|| panic!("on purpose")).join().is_err());
    process::exit(4)
}
