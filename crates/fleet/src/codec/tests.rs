//! What is written is what is read, and nothing else can be.

use proptest::prelude::*;

use super::*;

fn name() -> impl Strategy<Value = Fingerprint> {
    any::<[u8; 16]>().prop_map(Fingerprint)
}

fn span() -> impl Strategy<Value = Millis> {
    any::<u64>().prop_map(Millis)
}

fn reason() -> impl Strategy<Value = MarkReason> {
    prop::sample::select(vec![
        MarkReason::RateLimited,
        MarkReason::RetryAfter,
        MarkReason::AuthRejected,
        MarkReason::Exhausted,
        MarkReason::ModelGone,
        MarkReason::Manual,
    ])
}

fn cause() -> impl Strategy<Value = OpenCause> {
    prop_oneof![
        any::<u32>().prop_map(OpenCause::ConsecutiveFailures),
        any::<u32>().prop_map(OpenCause::BrokenAnswers),
        any::<(u32, u32)>()
            .prop_map(|(failed, samples)| OpenCause::FailureRatio { failed, samples }),
        Just(OpenCause::TrialFailed),
        Just(OpenCause::ProbeFailed),
        Just(OpenCause::Held),
        any::<u32>().prop_map(OpenCause::Suspected),
    ]
}

fn fact() -> impl Strategy<Value = Fact> {
    let excluded = prop_oneof![
        name().prop_map(Excluded::Key),
        (name(), name()).prop_map(|(backend, key)| Excluded::Pair { backend, key }),
        name().prop_map(Excluded::Model),
    ];
    let action = prop::sample::select(vec![OperatorAction::Drain, OperatorAction::Hold]);
    let lasts =
        prop_oneof![span().prop_map(Lasts::For), Just(Lasts::UntilEnded), Just(Lasts::Ended)];
    let breaker =
        prop_oneof![name().prop_map(BreakerOf::Backend), name().prop_map(BreakerOf::Endpoint)];
    prop_oneof![
        (name(), name(), span(), reason()).prop_map(|(backend, key, remaining, reason)| {
            Fact::Window { backend, key, remaining, reason }
        }),
        (excluded, proptest::option::of(span()), reason())
            .prop_map(|(of, remaining, reason)| Fact::Exclusion { of, remaining, reason }),
        (name(), action, lasts).prop_map(|(backend, action, lasts)| Fact::Action {
            backend,
            action,
            lasts
        }),
        name().prop_map(|backend| Fact::Reset { backend }),
        (breaker, span(), cause()).prop_map(|(of, remaining, cause)| Fact::Opened {
            of,
            remaining,
            cause
        }),
        (any::<u128>(), name(), name(), span(), span()).prop_map(
            |(session, backend, key, remaining, stays)| {
                Fact::Pin { session: PinKey(session), backend, key, remaining, stays }
            }
        ),
    ]
}

fn news() -> impl Strategy<Value = News> {
    let hint = (any::<(u64, u64, u128)>(), fact()).prop_map(|((age, version, writer), fact)| {
        let stamp = Stamp { version, writer: ReplicaId(writer) };
        News::Hint(Hint { age: Millis(age), stamp, fact, haste: Haste::AtOnce })
    });
    let event = (any::<bool>(), "[0-9a-f]{32}", any::<(u64, u128)>()).prop_map(
        |(is_claim, name, (epoch, by))| {
            let (name, by) = (SealedName(name), InstanceId(by));
            News::Session(match is_claim {
                true => SessionEvent::Claimed { name, epoch, by },
                false => SessionEvent::Released { name, epoch, by },
            })
        },
    );
    prop_oneof![4 => hint, 1 => event]
}

fn entry() -> impl Strategy<Value = Entry> {
    (any::<(u128, u64, u64)>(), proptest::collection::vec(news(), 0..8)).prop_map(
        |((writer, number, told_at_ms), news)| Entry {
            writer: ReplicaId(writer),
            number,
            told_at_ms,
            news,
        },
    )
}

proptest! {
    #[test]
    fn an_entry_is_read_as_it_was_written(entry in entry()) {
        prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }

    #[test]
    fn a_byte_too_few_or_too_many_is_no_entry(entry in entry(), extra in any::<u8>()) {
        let mut bytes = entry.encode();
        prop_assert_eq!(Entry::decode(&bytes[..bytes.len() - 1]), Err(CodecError::Form));
        bytes.push(extra);
        prop_assert_eq!(Entry::decode(&bytes), Err(CodecError::Form));
    }

    #[test]
    fn arbitrary_bytes_are_an_entry_only_if_they_are_written_so(bytes in any::<Vec<u8>>()) {
        if let Ok(entry) = Entry::decode(&bytes) {
            prop_assert_eq!(entry.encode(), bytes);
        }
    }
}

#[test]
fn another_version_is_told_from_a_broken_value() {
    assert_eq!(Entry::decode(&[2, 0, 0]), Err(CodecError::Version));
    assert_eq!(Entry::decode(&[1, 0, 0]), Err(CodecError::Form));
    assert_eq!(Entry::decode(&[]), Err(CodecError::Form));
}
