//! What survives an edit, and what is refused.

use super::*;

fn check_edit(text: &str, edit: impl FnOnce(&mut Fields<'_>), expected: &str) {
    let mut fields = Fields::parse(text, &["name"]).expect("an object");
    edit(&mut fields);
    assert_eq!(fields.to_json(), expected);
}

#[test]
fn an_edit_keeps_place_numbers_and_escapes() {
    check_edit(
        r#"{ "z":1.0, "\u006eame" : "old", "a":12345678901234567890, "b":"\u00e9\/" }"#,
        |fields| fields.set_text("name", "new"),
        r#"{"z":1.0,"\u006eame":"new","a":12345678901234567890,"b":"\u00e9\/"}"#,
    );
    check_edit("{}", |fields| fields.set_text("a\"b", "c\n"), r#"{"a\"b":"c\n"}"#);
    check_edit(r#"{"a":1,"b":[ 1 ]}"#, |fields| _ = fields.remove("a"), r#"{"b":[ 1 ]}"#);
}

#[test]
fn an_inner_object_is_made_edited_and_taken_out() {
    let add = |fields: &mut Fields<'_>| {
        fields.edit("m", &[], |inner| inner.set("t", number_value(7))).expect("an object");
    };
    check_edit(r#"{"a":1}"#, add, r#"{"a":1,"m":{"t":7}}"#);
    check_edit(r#"{"m":{"x":1e3,"t":"q"},"a":1}"#, add, r#"{"m":{"x":1e3,"t":7},"a":1}"#);
    let strip = |fields: &mut Fields<'_>| {
        fields.edit("m", &[], |inner| _ = inner.remove("t")).expect("an object");
    };
    check_edit(r#"{"m":{"t":1},"a":1}"#, strip, r#"{"a":1}"#);
    check_edit(r#"{"m":{},"n":null}"#, strip, r#"{"m":{},"n":null}"#);
    let mut fields = Fields::parse(r#"{"m":3}"#, &[]).expect("an object");
    assert_eq!(fields.edit("m", &[], |_| {}), Err(Flaw::NotAnObject));
}

#[test]
fn keys_that_readers_disagree_about_are_refused() {
    let known = &["jsonrpc", "params"];
    let flaw = |text| Fields::parse(text, known).expect_err("a flaw").to_string();
    assert_eq!(flaw(r#"{"a":1,"\u0061":2}"#), "the key `a` stands twice");
    assert_eq!(flaw(r#"{"Params":1}"#), "the key `Params` must be written `params`");
    assert!(flaw("{\"param\u{17f}\":1}").ends_with("must be written `params`"));
    assert!(Fields::parse(r#"{"Other":1,"other":2}"#, known).is_ok());
}

#[test]
fn of_keys_that_stand_twice_the_first_by_name_is_told_however_many_fields_there_are() {
    for more in [0, FEW_FIELDS - 4, FEW_FIELDS - 3, 3 * FEW_FIELDS] {
        let others: String = (0..more).map(|it| format!(r#""k{it}":0,"#)).collect();
        let text = format!(r#"{{"z":1,"z":2,{others}"b":1,"b":2}}"#);
        let flaw = Fields::parse(&text, &[]).expect_err("two keys stand twice");
        assert_eq!(flaw, Flaw::Twice("b".to_owned()), "{text}");
    }
}

#[test]
fn what_is_no_object_or_too_large_is_refused() {
    for (text, flaw) in [("[]", Flaw::NotAnObject), (" 3", Flaw::NotAnObject)] {
        assert_eq!(Fields::parse(text, &[]).expect_err("a flaw"), flaw);
    }
    for text in ["", "{", "{\"a\":}", "{}}", "{\"a\":\"\\ud800x\",}", "nul", "{\"\\ud800\":1}"] {
        let flaw = Fields::parse(text, &[]).expect_err("a flaw");
        assert!(matches!(flaw, Flaw::NotJson(_)), "{text}: {flaw}");
    }
    let nested = |levels| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(Fields::parse(&nested(MAX_DEPTH - 1), &[]).is_ok());
    assert_eq!(Fields::parse(&nested(MAX_DEPTH), &[]).expect_err("a flaw"), Flaw::TooDeep);
    let many: Vec<String> = (0..=MAX_FIELDS).map(|n| format!("\"{n}\":0")).collect();
    let many = format!("{{{}}}", many.join(","));
    assert_eq!(Fields::parse(&many, &[]).expect_err("a flaw"), Flaw::TooManyFields);
}

#[test]
fn brackets_inside_texts_do_not_count_as_depth() {
    let text = format!("{{\"a\":\"{}\\\"{}\"}}", "[".repeat(200), "{".repeat(200));
    assert!(Fields::parse(&text, &[]).is_ok());
}

#[test]
fn a_message_of_many_lines_becomes_one() {
    let one = one_line("{\n\t\"a\":\r\n\"x\\ny\"}".to_owned());
    assert_eq!(one, "{ \t\"a\":  \"x\\ny\"}");
}

#[test]
fn a_splice_changes_nothing_else() {
    let text = "{ \"b\" : 1.0 ,\n \"name\" : \"old\" }";
    let spliced = splice(text, "name", "\"n\"").expect("it has the field");
    assert_eq!(spliced, "{ \"b\" : 1.0 ,\n \"name\" : \"n\" }");
    assert_eq!(splice("{}", "name", "1"), Err(Flaw::Absent("name".to_owned())));
}
