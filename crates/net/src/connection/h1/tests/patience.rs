//! How long a client is waited for, and what a client that is not there any more costs.

use super::*;
use crate::connection::half_close::INTERIM;

const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/// How long a connection is held, in seconds, whose client says this and nothing more.
async fn held(bed: &Bed, said: &str) -> u64 {
    let (mut ours, theirs) = duplex(ROOM);
    ours.write_all(said.as_bytes()).await.expect("there is room");
    let began = timer_now();
    let mut heard = Vec::new();
    let (_, ()) = tokio::join!(ours.read_to_end(&mut heard), bed.serve(theirs));
    began.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_held_longer_than_a_head_may_take() {
    let bed = Bed::echo();
    assert_eq!(held(&bed, "").await, 75);
    assert_eq!(held(&bed, GET).await, 75);
    let chunked = "GET / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(held(&bed, chunked).await, 75);
}

#[tokio::test(start_paused = true)]
async fn s48_a_head_that_has_begun_must_end() {
    let bed = Bed::echo();
    for said in ["GET / HT", "GET / HTTP/1.1\r\nhost: x\r\n", "\r", &format!("{GET}GET /")] {
        assert_eq!(held(&bed, said).await, 10, "{said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn s48_a_body_that_nobody_reads_is_not_waited_for() {
    let bed = Bed::instant(|| answer(401, ""));
    for framing in
        ["content-length: 9\r\n\r\nabc", "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"]
    {
        let said = format!("GET / HTTP/1.1\r\nhost: x\r\n{framing}");
        assert_eq!(held(&bed, &said).await, 2, "{framing:?}: it may read its answer");
    }
}

#[tokio::test(start_paused = true)]
async fn s48_a_head_in_drops_is_not_waited_for_longer() {
    let bed = Bed::echo();
    let (mut ours, theirs) = duplex(ROOM);
    let began = timer_now();
    let client = async {
        for byte in GET.as_bytes() {
            tokio::time::sleep(Duration::from_secs(3)).await;
            if ours.write_all(&[*byte]).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(client, bed.serve(theirs));
    assert_eq!(began.elapsed().as_secs(), 3 + 10 + 2, "found when it says something again");
}

#[tokio::test(start_paused = true)]
async fn while_an_answer_is_made_the_client_is_not_hurried() {
    let bed = Bed::of(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(1000)).await;
            answer(200, "")
        })
    });
    assert_eq!(held(&bed, GET).await, 1000 + 75);
    assert_eq!(held(&bed, &format!("{GET}{GET}")).await, 2000 + 75);
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_client_is_waited_for_until_a_write_finds_it_gone() {
    let bed = Bed::of(|_| Box::pin(std::future::pending()));
    let (mut ours, theirs) = duplex(ROOM);
    let began = timer_now();
    let client = async {
        ours.write_all(GET.as_bytes()).await.expect("there is room");
        ours.shutdown().await.expect("its side closes");
        tokio::time::sleep(Duration::from_secs(4)).await;
        let mut heard = [0; 64];
        let count = ours.read(&mut heard).await.expect("interim responses");
        assert!(heard[..count].starts_with(INTERIM));
        drop(ours);
    };
    tokio::join!(client, bed.serve(theirs));
    let took = began.elapsed();
    assert!((4..20).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_client_gets_its_late_answer() {
    let bed = Bed::of(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            answer(200, "late")
        })
    });
    let said = bed.hear_text(GET).await;
    let (interim, last) = said.split_at(said.rfind("HTTP/1.1").expect("an answer"));
    assert_eq!(last, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate");
    assert!(!interim.is_empty() && interim.replace("HTTP/1.1 100 Continue\r\n\r\n", "").is_empty());
    let old = bed.hear_text("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(old, "HTTP/1.0 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nlate");
}

#[tokio::test(start_paused = true)]
async fn s52_a_client_that_takes_nothing_is_let_go_and_a_slow_one_is_not() {
    let bed = Bed::instant(|| answer(200, vec![0; 100_000]));
    let (mut ours, theirs) = duplex(64);
    let began = timer_now();
    let slow = async {
        ours.write_all(GET.as_bytes()).await.expect("there is room");
        let mut buffer = [0; 32];
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_secs(50)).await;
            ours.read_exact(&mut buffer).await.expect("bytes are there");
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = bed.serve(theirs) => {}
        () = slow => unreachable!("it waits for ever"),
    }
    assert_eq!(began.elapsed().as_secs(), 200 + 60);
}

#[tokio::test(start_paused = true)]
async fn at_the_drain_an_idle_connection_ends_and_any_other_after_its_answer() {
    let bed = Bed::of(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            answer(200, "")
        })
    });
    let (mut idle, theirs) = duplex(ROOM);
    let (mut busy, others) = duplex(ROOM);
    let began = timer_now();
    let ended = async |client: &mut DuplexStream| {
        let mut said = Vec::new();
        client.read_to_end(&mut said).await.expect("it ends");
        (began.elapsed().as_secs(), without_dates(&said))
    };
    let clients = async {
        for client in [&mut idle, &mut busy] {
            client.write_all(GET.as_bytes()).await.expect("there is room");
        }
        tokio::time::sleep(Duration::from_secs(6)).await;
        busy.write_all(GET.as_bytes()).await.expect("there is room");
        tokio::time::sleep(Duration::from_secs(1)).await;
        bed.phase.send_replace(Phase::Draining);
        (ended(&mut idle).await, ended(&mut busy).await)
    };
    let ((idle, busy), (), ()) = tokio::join!(clients, bed.serve(theirs), bed.serve(others));
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n";
    assert_eq!(idle, (7, format!("{answer}\r\n")));
    assert_eq!(busy, (11, format!("{answer}\r\n{answer}connection: close\r\n\r\n")));
}

/// What the function makes of a connection, without one.
fn size_made<F>(_: impl FnOnce(tokio::net::TcpStream) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn a_connection_that_idles_takes_little_memory() {
    let (bed, activity) = (Bed::echo(), Activity::new());
    let size = size_made(|stream| bed.service.serve(stream, &activity));
    let wire = size_of::<super::super::wire::Wire>();
    assert!(size <= 2560 && wire <= 512, "{size} and {wire} bytes");
}
