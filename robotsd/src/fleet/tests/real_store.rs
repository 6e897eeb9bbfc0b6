//! Compares the fake store of the simulation with the script in a real store. The same writes must
//! have the same results, and lead to the same document.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, Connection, Script, cmd};
use tempfile::TempDir;

use super::super::document::{Accept, Document, OffSwitch, Stamp, Write, WriteAnswer, WriteCall};
use super::super::test_store::PlayedStore;

const SEQUENCES: u64 = 60;
const WRITES: usize = 50;

/// A store server on a Unix socket. The server is killed when this value is dropped.
struct RealStore(Child, Connection, #[expect(dead_code)] TempDir);

impl RealStore {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let mut server = Command::new("redis-server");
        server.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket).stdout(Stdio::null());
        let started = server.spawn();
        assert!(started.is_ok() || std::env::var_os("CI").is_none(), "redis-server: {started:?}");
        let process = started.ok()?;
        let client = Client::open(format!("unix://{}", socket.display())).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match client.get_connection() {
                Ok(connection) => return Some(Self(process, connection, folder)),
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn write(&mut self, call: &WriteCall) -> WriteAnswer {
        let script = Script::new(include_str!("../write.lua"));
        let mut written = script.key("doc");
        for argument in call.arguments() {
            written.arg(argument);
        }
        let (word, value): (String, String) = written.invoke(&mut self.1).unwrap();
        match &*word {
            "written" => WriteAnswer::Written(value.parse().unwrap()),
            "conflict" => WriteAnswer::Conflict(value.parse().unwrap()),
            "foreign" => WriteAnswer::Foreign(value),
            "kept" => WriteAnswer::NotNeeded,
            other => panic!("{other}"),
        }
    }

    fn document(&mut self) -> Option<Document> {
        let fields: Vec<(Vec<u8>, Vec<u8>)> = cmd("HGETALL").arg("doc").query(&mut self.1).unwrap();
        let mut document = Document::read(fields).unwrap();
        // Descriptions are not compared, because the fake store does not describe damage.
        document.iter_mut().flat_map(|document| document.damaged.values_mut()).for_each(|damage| damage.why.clear());
        document
    }
}

impl Drop for RealStore {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A SplitMix random number generator. The same seed produces the same sequence.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn call(&mut self, document: Option<&Document>) -> WriteCall {
        let rev = document.map_or(0, |document| document.rev);
        let stamp = Stamp {
            rev: self.roll(9),
            by: ["alice", "bob \"B\"", "uid 0"][self.roll(3) as usize].to_owned(),
            at: self.roll(2_000_000_000),
            why: ["", "an outage\n{", "é"].get(self.roll(4) as usize).map(|&why| why.to_owned()),
        };
        let (id, scope) = (format!("{:x}", self.roll(3)), ["*", "shop", "a:b"][self.roll(3) as usize].to_owned());
        let site = ["shop", "news"][self.roll(2) as usize].to_owned();
        let write = match self.roll(11) {
            0 => Write::Begin,
            1..4 => Write::OffSwitch(OffSwitch { scope, id, stamp }),
            4..6 => Write::Lift(OffSwitch { scope, id, stamp: stamp.clone() }.name(), stamp),
            10 if document.is_some() => Write::Repair(document.unwrap().repairs(&BTreeMap::new(), &stamp)),
            _ => {
                let held = document.and_then(|document| document.accepts.get(&site)).map_or(0, |held| held.stamp.rev);
                let expected = [held, held, held, 0, rev][self.roll(5) as usize];
                Write::Accept(site, Accept { id, hash: format!("sha256:{:x}", self.roll(1 << 40)), stamp }, expected)
            }
        };
        // Some revs are large, as after a store was restored. None exceeds 2^53, Lua's limit.
        let floor = match self.roll(40) {
            0 => 1 << 40,
            1..10 => rev,
            10..20 => rev + self.roll(5),
            _ => 0,
        };
        let epoch = if self.roll(15) == 0 { "f" } else { "e" };
        WriteCall { epoch: epoch.to_owned(), floor, tag: format!("{:x}", self.roll(1 << 50)), write }
    }
}

fn damage(dice: &mut Dice, real: &mut RealStore, played: &mut PlayedStore) {
    let Some(document) = &played.0 else { return };
    let entries = document.marks.keys().map(|name| format!("off:{name}"));
    let entries = entries.chain(document.lifted.keys().map(|name| format!("lifted:{name}")));
    let entries = entries.chain(document.accepts.keys().map(|site| format!("accept:{site}")));
    let fields: Vec<_> = ["epoch", "rev"].map(str::to_owned).into_iter().chain(entries).collect();
    let field = &fields[dice.roll(fields.len() as u64) as usize];
    let far: &[u8] = match field.split(':').next() {
        Some("rev") => b"18446744073709551614",
        Some("accept") => b"{\"id\":\"1\",\"hash\":\"h\",\"rev\":18446744073709551614}",
        _ => b"{",
    };
    let value = [far, b"\xff", b""][dice.roll(3) as usize];
    played.damage(field, value);
    let _: u8 = cmd("HSET").arg("doc").arg(field).arg(value).query(&mut real.1).unwrap();
}

#[test]
fn a_repeated_accept_does_not_conflict_with_itself() {
    let Some(mut real) = RealStore::start() else { return };
    let accept = |id: &str| {
        let accept = Accept { id: id.to_owned(), hash: format!("sha256:{id}"), stamp: Stamp::default() };
        let write = Write::Accept("shop".to_owned(), accept, 0);
        WriteCall { epoch: "e".to_owned(), floor: 0, tag: "t".to_owned(), write }
    };
    assert_eq!(real.write(&accept("1")), WriteAnswer::Written(1));
    assert_eq!(real.write(&accept("1")), WriteAnswer::Written(1));
    assert_eq!(real.write(&accept("2")), WriteAnswer::Conflict(1));
}

#[test]
fn the_script_handles_every_write_in_the_same_way_as_the_played_store() {
    let Some(mut real) = RealStore::start() else { return };
    let mut seen = [0; 4];
    for seed in 0..SEQUENCES {
        let _: () = cmd("FLUSHALL").query(&mut real.1).unwrap();
        let (mut played, mut dice) = (PlayedStore::default(), Dice(seed));
        for number in 0..WRITES {
            if dice.roll(6) == 0 {
                damage(&mut dice, &mut real, &mut played);
            }
            let call = dice.call(played.0.as_ref());
            let before = played.0.clone();
            let answer = played.write(&call);
            assert_eq!(real.write(&call), answer, "seed {seed}, write {number}: {call:?} to {before:?}");
            assert_eq!(real.document(), played.0, "seed {seed}, write {number}: {call:?} to {before:?}");
            seen[match answer {
                WriteAnswer::Written(_) => 0,
                WriteAnswer::NotNeeded => 1,
                WriteAnswer::Conflict(_) => 2,
                WriteAnswer::Foreign(_) => 3,
            }] += 1;
        }
    }
    assert!(seen.iter().all(|times| *times > 20), "{seen:?}");
}
