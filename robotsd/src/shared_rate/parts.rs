//! The parts of a store that fail apart: of a cluster, sixteen runs of slots; of one server, the whole.
//!
//! Nodes of a cluster mostly have runs of slots, so a node that is out takes a few parts with it, and the others are asked on.

use super::bucket::{BucketOwner, SharedKey};
use super::settings::{StoreNodes, StoreSettings};

/// Parts of a cluster.
const PARTS: usize = 16;

/// Slots of a cluster in each part, of 16,384.
const SLOTS: usize = 16_384 / PARTS;

/// Keys that are tried as the probe of a part. With a hash tag in the prefix all of them are in one slot.
const TRIES: u16 = 4096;

/// How many parts the store has.
pub(super) const fn count(nodes: StoreNodes) -> usize {
    match nodes {
        StoreNodes::One => 1,
        StoreNodes::Cluster => PARTS,
    }
}

/// The part that a key is in.
pub(super) fn of(key: SharedKey, settings: &StoreSettings) -> usize {
    match settings.nodes {
        StoreNodes::One => 0,
        StoreNodes::Cluster => slot(key.name(&settings.prefix).as_bytes()) / SLOTS,
    }
}

/// A key for each part, with which it is probed; none where no key is in that part.
pub(super) fn probes(settings: &StoreSettings) -> Vec<Option<SharedKey>> {
    let mut probes = vec![None; count(settings.nodes)];
    for number in 0..TRIES {
        let key = SharedKey::new(BucketOwner::Crawler, &[b"probe", &number.to_le_bytes()]);
        probes[of(key, settings)].get_or_insert(key);
        if probes.iter().all(Option::is_some) {
            break;
        }
    }
    probes
}

/// The slot of a key: the CRC-16 (XMODEM) of its hash tag, or of all of it, as the specification of Redis Cluster has it.
fn slot(name: &[u8]) -> usize {
    let tag = name.iter().position(|&octet| octet == b'{').and_then(|open| {
        let rest = &name[open + 1..];
        let end = rest.iter().position(|&octet| octet == b'}')?;
        Some(&rest[..end]).filter(|tag| !tag.is_empty())
    });
    let crc = tag.unwrap_or(name).iter().fold(0u16, |crc, &octet| {
        (0..8).fold(
            crc ^ (u16::from(octet) << 8),
            |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 },
        )
    });
    usize::from(crc) % (PARTS * SLOTS)
}

#[cfg(test)]
mod tests {
    use super::super::settings::StoreUrl;
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"));
    }

    #[test]
    fn each_part_has_a_probe_that_is_in_it() {
        let settings = StoreSettings::new(StoreUrl::new("redis://10.0.0.5").unwrap());
        assert_eq!(probes(&settings).len(), 1);
        let cluster = settings.nodes(StoreNodes::Cluster);
        for (part, key) in probes(&cluster).into_iter().enumerate() {
            assert_eq!(of(key.unwrap(), &cluster), part);
        }
        // One slot for all: one part.
        let tagged = cluster.prefix("{rate}:");
        assert_eq!(probes(&tagged).into_iter().flatten().count(), 1);
    }
}
