//! What a client reads, loses and reads again.

use super::{
    account::tests::{account, held},
    *,
};

const PLENTY: usize = 1 << 30;

async fn local(test: impl Future<Output = ()>) {
    tokio::task::LocalSet::new().run_until(test).await;
}

async fn read(events: &mut mpsc::Receiver<Bytes>) -> String {
    let event = events.recv().await.expect("an event");
    String::from_utf8(event.to_vec()).expect("events are text")
}

#[tokio::test]
async fn a_stream_begins_with_a_priming_event_where_clients_know_it() {
    local(async {
        let (stream, mut events) = Streams::new(true, account(PLENTY)).begin();
        stream.send(b"{}", Weight::Needed);
        assert_eq!(read(&mut events).await, "id: 1-0\nretry: 1000\ndata:\n\n");
        assert_eq!(read(&mut events).await, "event: message\nid: 1-1\ndata: {}\n\n");
        let (stream, mut events) = Streams::new(false, account(PLENTY)).begin();
        stream.send(b"{}", Weight::Needed);
        assert_eq!(read(&mut events).await, "event: message\nid: 1-0\ndata: {}\n\n");
    })
    .await;
}

#[tokio::test]
async fn a_paused_stream_lets_its_reader_go_with_all_there_is_and_takes_the_next() {
    local(async {
        let streams = Streams::new(true, account(PLENTY));
        let (stream, mut events) = streams.begin();
        stream.pause();
        assert!(read(&mut events).await.starts_with("id: 1-0\n"), "what it can come back with");
        assert_eq!(events.recv().await, None);
        stream.send(b"1", Weight::Needed);
        streams.end(&stream);
        let mut again = streams.resume("1-0").expect("the stream is known").expect("it is kept");
        assert!(read(&mut again).await.contains("data: 1\n"));
        assert_eq!(again.recv().await, None);
    })
    .await;
}

#[tokio::test]
async fn a_stream_without_a_priming_event_is_never_paused() {
    local(async {
        let (stream, mut events) = Streams::new(false, account(PLENTY)).begin();
        stream.pause();
        stream.send(b"1", Weight::Needed);
        assert!(read(&mut events).await.contains("data: 1\n"));
    })
    .await;
}

#[tokio::test]
async fn a_client_that_lost_its_connection_gets_what_it_missed_and_the_rest() {
    local(async {
        let streams = Streams::new(false, account(PLENTY));
        let (stream, mut events) = streams.begin();
        stream.send(b"1", Weight::Needed);
        read(&mut events).await;
        drop(events);
        tokio::task::yield_now().await;
        stream.send(b"2", Weight::Needed);
        let mut again = streams.resume("1-0").expect("the stream is known").expect("it is kept");
        assert!(read(&mut again).await.contains("data: 2\n"));
        stream.send(b"3", Weight::Needed);
        streams.end(&stream);
        assert!(read(&mut again).await.contains("data: 3\n"));
        assert!(again.recv().await.is_none(), "an ended stream ends");
        assert!(matches!(streams.resume("1-1"), Some(Ok(_))), "and can be asked for its end again");
        assert!(streams.resume("9-0").is_none() && streams.resume("x").is_none());
    })
    .await;
}

#[tokio::test]
async fn a_second_reader_takes_over() {
    local(async {
        let streams = Streams::new(false, account(PLENTY));
        let standing = streams.standing();
        let mut first = standing.attach_unsent();
        standing.send(b"1", Weight::Notice);
        assert!(read(&mut first).await.contains("data: 1\n"));
        let mut second = standing.attach_unsent();
        standing.send(b"2", Weight::Notice);
        assert!(read(&mut second).await.contains("data: 2\n"));
        assert!(first.recv().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_notices_and_no_answer() {
    local(async {
        let streams = Streams::new(false, account(PLENTY));
        let (stream, mut events) = streams.begin();
        let large = vec![b'x'; 64 * 1024];
        for _ in 0..200 {
            stream.send(&large, Weight::Notice);
        }
        stream.send(b"answer", Weight::Needed);
        streams.end(&stream);
        let mut count = 0;
        let mut last = String::new();
        while let Some(event) = events.recv().await {
            last = String::from_utf8(event.to_vec()).expect("text");
            count += 1;
        }
        assert!(last.contains("data: answer\n"));
        assert!((10..40).contains(&count), "{count} events");
    })
    .await;
}

#[tokio::test]
async fn answers_count_as_their_callers_until_they_are_read_or_gone() {
    local(async {
        let account = account(1000);
        let streams = Streams::new(true, account.clone());
        let (stream, mut events) = streams.begin();
        read(&mut events).await;
        stream.answer(&Id::number(7), &[b'x'; 700]);
        streams.end(&stream);
        let (other, mut others) = streams.begin();
        read(&mut others).await;
        other.answer(&Id::number(8), &[b'x'; 700]);
        let told = read(&mut others).await;
        assert!(told.contains("answer_gone") && told.contains(r#""id":8"#), "{told}");
        assert!(held(&account) <= 1000);
        assert!(read(&mut events).await.contains("xxx"));
        drop((streams, stream, other, events, others));
        tokio::task::yield_now().await;
        assert_eq!(held(&account), 0);
    })
    .await;
}

#[test]
fn a_message_of_several_lines_is_one_event() {
    let event = event(Some(0), 7, b"{\r\n\"a\":1\n}");
    let text = std::str::from_utf8(&event).expect("text");
    assert_eq!(text, "event: message\nid: 0-7\ndata: {\ndata: \ndata: \"a\":1\ndata: }\n\n");
}
