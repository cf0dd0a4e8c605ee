//! How requests are read: one after the other, however their bytes come.

use super::*;

const TWO: &str = "POST /a?b HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello\
    GET /c HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test]
async fn requests_that_come_together_are_answered_in_their_order() {
    let bed = Bed::echo();
    let said = bed.hear_text(TWO).await;
    let first = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    assert_eq!(said, format!("{first}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    let targets: Vec<String> = bed.seen.borrow().iter().map(|it| it.target.clone()).collect();
    assert_eq!(targets, ["/a?b", "/c"]);
}

#[tokio::test]
async fn a_conversation_means_the_same_however_it_is_cut() {
    for text in [
        TWO,
        "\r\nPUT / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n\
         2;e=1\r\nhe\r\n3\r\nllo\r\n0\r\nt: v\r\n\r\nGET /c HTTP/1.0\r\n\r\n",
        "PUT / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhell",
        "PUT / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2 \r\nhe\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\nx: y\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nhi",
        "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n",
    ] {
        let heard = async |parts: &[&[u8]]| {
            let bed = Bed::echo();
            // Whether a client is told to go on depends on whether it has.
            let said = bed.hear(parts).await.replace("HTTP/1.1 100 Continue\r\n\r\n", "");
            (said, bed.seen.take())
        };
        let bytes = text.as_bytes();
        let whole = heard(&[bytes]).await;
        assert!(!whole.0.is_empty(), "{text:?}");
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(heard(&[first, second]).await, whole, "{text:?} cut at {cut}");
        }
        let dripped: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(heard(&dripped).await, whole, "{text:?} in single bytes");
    }
}

#[tokio::test]
async fn what_is_no_request_is_answered_and_nothing_behind_it_is_read() {
    let next = "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n";
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(HEAD_LIMIT));
    for (text, status) in [
        (
            "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n",
            "400 Bad Request",
        ),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 Bad Request"),
        ("\u{16}\u{3}\u{1}\u{2}", "400 Bad Request"),
        (&long, "431 Request Header Fields Too Large"),
    ] {
        let bed = Bed::echo();
        let said = bed.hear_text(&format!("{text}{next}")).await;
        let expected =
            format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        assert_eq!(said, expected, "{text:?}");
        assert!(bed.seen.borrow().is_empty(), "{text:?}");
    }
}

#[tokio::test]
async fn a_body_that_nobody_read_closes_the_connection() {
    let next = "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n";
    for (framing, is_kept) in [
        ("content-length: 3\r\n\r\nabc", false),
        ("transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false),
        ("transfer-encoding: chunked\r\n\r\n0\r\n\r\n", false),
        ("content-length: 0\r\n\r\n", true),
    ] {
        let bed = Bed::instant(|| answer(401, ""));
        let said = bed.hear_text(&format!("POST / HTTP/1.1\r\nhost: x\r\n{framing}{next}")).await;
        let answers = said.matches("HTTP/1.1 401").count();
        assert_eq!(
            (answers, said.contains("connection: close")),
            if is_kept { (2, false) } else { (1, true) },
            "{framing:?}: {said}"
        );
    }
}

#[tokio::test]
async fn a_client_that_waits_is_told_to_go_on_when_its_body_is_wanted() {
    let head = "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    let said = Bed::echo().hear(&[head.as_bytes(), b"hi"]).await;
    let answer_text = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
    assert_eq!(said, format!("HTTP/1.1 100 Continue\r\n\r\n{answer_text}"));
    let said = Bed::echo().hear_text(&format!("{head}hi")).await;
    assert_eq!(said, answer_text, "it did not wait");
    let refusing = Bed::instant(|| answer(413, "no"));
    let said = refusing.hear(&[head.as_bytes(), b"hi"]).await;
    let refusal =
        "HTTP/1.1 413 Payload Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";
    assert_eq!(said, refusal, "its body is not wanted");
}

#[tokio::test]
async fn a_long_body_comes_whole_and_its_length_is_known() {
    let body = "0123456789abcdef".repeat(40_000);
    let text = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    let bed = Bed::of(|mut request| {
        Box::pin(async move {
            let announced = http_body::Body::size_hint(request.body()).exact();
            let body = request.body_mut().collect().await.expect("whole").to_bytes();
            assert_eq!(announced, Some(body.len() as u64));
            assert!(http_body::Body::is_end_stream(request.body()));
            answer(200, body)
        })
    });
    let parts: Vec<&[u8]> =
        [text.as_bytes()].into_iter().chain(body.as_bytes().chunks(60_001)).collect();
    assert!(bed.hear(&parts).await.ends_with(&format!("\r\n\r\n{body}")));
}

#[tokio::test]
async fn a_body_that_ends_early_breaks() {
    for framing in ["content-length: 9\r\n\r\nabc", "transfer-encoding: chunked\r\n\r\n9\r\nabc"] {
        let bed = Bed::echo();
        let said = bed.hear_text(&format!("POST / HTTP/1.1\r\nhost: x\r\n{framing}")).await;
        assert!(said.contains("connection: close"), "{said}");
        assert_eq!(bed.seen.borrow()[0].body, None, "{framing:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_kept_reads_nothing_of_the_next_request_nor_holds_the_connection() {
    let kept: Rc<RefCell<Vec<RequestBody>>> = Rc::default();
    let log = Rc::clone(&kept);
    let bed = Bed::of(move |mut request| {
        let log = Rc::clone(&log);
        Box::pin(async move {
            let earlier = log.borrow_mut().pop();
            if let Some(mut earlier) = earlier {
                assert!(matches!(earlier.frame().await, Some(Err(BodyBroke))));
            }
            let body = request.body_mut().collect().await.expect("whole").to_bytes();
            log.borrow_mut().push(request.into_body());
            answer(200, body)
        })
    });
    let text = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi";
    // `hear` returns when the connection is closed, though a body of it is still kept.
    let said = bed.hear_text(&text.repeat(2)).await;
    assert_eq!(said.matches("\r\n\r\nhi").count(), 2, "{said}");
    let mut last = kept.borrow_mut().pop().expect("the second one is kept");
    assert!(matches!(last.frame().await, Some(Err(BodyBroke))));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_gone_takes_its_request_with_it() {
    for (text, does_read) in [
        ("GET / HTTP/1.1\r\nhost: x\r\n\r\n", false),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nab", true),
    ] {
        let was_dropped = Rc::new(Cell::new(false));
        let mark = Rc::clone(&was_dropped);
        let mut bed = Bed::of(move |mut request| {
            let mark = DropMark(Rc::clone(&mark));
            Box::pin(async move {
                let _mark = mark;
                if does_read {
                    assert!(request.body_mut().collect().await.is_err());
                    return answer(400, "");
                }
                std::future::pending().await
            })
        });
        bed.service.is_cancelled_by_closing = |_| true;
        let (mut ours, theirs) = duplex(ROOM);
        let client = async {
            ours.write_all(text.as_bytes()).await.expect("there is room");
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(ours);
        };
        let began = timer_now();
        tokio::join!(client, bed.serve(theirs));
        assert!(was_dropped.get(), "{text:?}");
        assert_eq!(began.elapsed(), Duration::from_secs(1), "{text:?}");
    }
}
