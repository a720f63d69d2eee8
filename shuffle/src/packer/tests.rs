//! Blocks give back what was packed, whatever the mix, and no bytes make them panic.

use super::*;
use proptest::prelude::*;

fn unpacked(packer: &Packer) -> Vec<StreamElement<u32>> {
    let mut out = VecDeque::new();
    for block in packer.blocks() {
        unpack(block, &mut out).expect("what was packed can be unpacked");
    }
    out.into()
}

#[test]
fn every_kind_of_element_comes_back_in_order() {
    let barrier = |kind| Control::Barrier(Barrier { id: CheckpointId(7), kind });
    let controls = [
        Control::Attributes(RecordAttributes::BACKLOG),
        Control::Attributes(RecordAttributes::live(None)),
        Control::Attributes(RecordAttributes::live(Some(Timestamp(-5)))),
        Control::Watermark(Timestamp::MAX),
        Control::Idle,
        Control::Active,
        barrier(BarrierKind::ExactlyOnce),
        barrier(BarrierKind::AtLeastOnce),
        barrier(BarrierKind::Savepoint),
        barrier(BarrierKind::StopWithSavepoint),
        barrier(BarrierKind::DrainWithSavepoint),
    ];
    let mut packer = Packer::default();
    let mut expected = Vec::new();
    for (index, control) in (0_u32..).zip(controls) {
        let stamp = (index % 2 == 0).then_some(Timestamp(i64::from(index)));
        packer.push(&index, stamp);
        packer.control(control);
        let stamps = stamp.map(|stamp| vec![stamp]);
        expected.push(StreamElement::Batch(Batch::new(vec![index], stamps)));
        expected.push(StreamElement::Control(control));
    }
    packer.control(Control::EndOfInput);
    packer.cut();
    assert_eq!(unpacked(&packer), expected);
}

#[test]
fn records_of_no_bytes_come_back_in_full_number() {
    let mut packer = Packer::default();
    (0..3_000).for_each(|_| packer.push(&(), None));
    packer.cut();
    let mut out = VecDeque::new();
    packer.blocks().for_each(|block| unpack::<()>(block, &mut out).expect("decodes"));
    let sizes: Vec<usize> = out
        .iter()
        .map(|element| match element {
            StreamElement::Batch(batch) => batch.len(),
            StreamElement::Control(_) => 0,
        })
        .collect();
    assert_eq!(sizes, [1_024, 1_024, 952]);
}

proptest! {
    #[test]
    fn blocks_give_back_all_records_wherever_they_are_cut(
        records in prop::collection::vec((any::<u32>(), any::<Option<i64>>(), any::<bool>()), 0..200),
    ) {
        let mut packer = Packer::default();
        for (value, stamp, cut) in &records {
            packer.push(value, stamp.map(Timestamp));
            if *cut {
                packer.cut();
            }
        }
        packer.cut();
        let found: Vec<_> = unpacked(&packer)
            .into_iter()
            .flat_map(|element| match element {
                StreamElement::Batch(batch) => batch.into_records().collect(),
                StreamElement::Control(_) => Vec::new(),
            })
            .collect();
        let expected: Vec<_> =
            records.iter().map(|(value, stamp, _)| (*value, stamp.map(Timestamp))).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut out: VecDeque<StreamElement<String>> = VecDeque::new();
        let _ = unpack(&bytes, &mut out);
        prop_assert!(out.len() <= bytes.len() || bytes.is_empty());
    }
}
