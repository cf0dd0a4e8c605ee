//! Tools that were found, as rows for people: score, name, server, what it is for; and below each,
//! where it was asked for, how the ranking came about.

use serde_json::Value;

use super::super::calm;
use super::super::list::{ABOUT_MIN, columns, cut};
use crate::wrap::fill;

/// Columns of a score and what follows it.
const SCORE: usize = 6;
/// A part that adds less says nothing.
const FAINT: f64 = 0.05;

/// One tool as it is shown.
struct SearchRow {
    score: String,
    name: String,
    server: String,
    about: String,
    /// Lines of an explanation.
    below: Vec<String>,
}

/// All rows.
pub(super) fn table(tools: &[Value], width: usize, is_ascii: bool) -> String {
    let rows: Vec<SearchRow> = tools.iter().map(|tool| row(tool, is_ascii)).collect();
    let widest = |part: fn(&SearchRow) -> &str| rows.iter().map(|row| columns(part(row))).max();
    let names = widest(|row| &row.name).unwrap_or(0);
    let servers = widest(|row| &row.server).unwrap_or(0);
    let before = SCORE + names + 2 + if servers > 0 { servers + 2 } else { 0 };
    let is_narrow = before + ABOUT_MIN > width;
    let indent = " ".repeat(SCORE);
    let mut out = String::new();
    for SearchRow { score, name, server, about, below } in &rows {
        let head = match (is_narrow, servers) {
            (true, _) => format!("{score}  {name}\n{indent}"),
            (false, 0) => format!("{score}  {name:names$}  "),
            (false, _) => format!("{score}  {name:names$}  {server:servers$}  "),
        };
        let room = width.saturating_sub(if is_narrow { SCORE } else { before });
        out.push_str(format!("{head}{}", cut(about, room, is_ascii)).trim_end());
        out.push('\n');
        for line in below {
            let words: Vec<&str> = line.split(' ').collect();
            let filled = fill(&words, width.saturating_sub(SCORE).max(ABOUT_MIN), 2);
            filled.lines().for_each(|line| out.push_str(&format!("{indent}{line}\n")));
        }
    }
    out
}

fn row(tool: &Value, is_ascii: bool) -> SearchRow {
    let text = |key: &str| calm(tool[key].as_str().unwrap_or_default());
    let one_line = |text: String| text.replace(['\n', '\t'], " ");
    let description = text("description");
    let first = description.lines().map(str::trim).find(|line| !line.is_empty());
    let about = first.unwrap_or_default().replace('\t', " ");
    let is_down = tool["available"] == false;
    let mark = if is_ascii { "x" } else { "✕" };
    SearchRow {
        score: format!("{:.2}", tool["score"].as_f64().unwrap_or_default()),
        name: one_line(text("name")),
        server: one_line(text("server")),
        about: if is_down { format!("{mark} unavailable: {about}") } else { about },
        below: explanation(&tool["explanation"], is_ascii),
    }
}

/// What each part added, most first; then the words, and where the tool has them.
fn explanation(told: &Value, is_ascii: bool) -> Vec<String> {
    let Some(parts) = told["parts"].as_object() else { return Vec::new() };
    let between = if is_ascii { ", " } else { " · " };
    let value = |value: &Value| value.as_f64().unwrap_or_default();
    let mut added: Vec<(&str, f64)> = parts
        .iter()
        .map(|(name, it)| (name.as_str(), value(it)))
        .filter(|(_, it)| it.abs() >= FAINT)
        .collect();
    added.sort_by(|one, next| next.1.abs().total_cmp(&one.1.abs()));
    let added: Vec<String> =
        added.iter().map(|(name, it)| format!("{} {it:.1}", name.replace('_', " "))).collect();
    let (sum, needed) = (value(&told["sum"]), value(&told["needed"]));
    let sums = format!("sum {sum:.1}, a good match needs {needed:.1}: {}", added.join(between));
    let words: Vec<String> = told["words"].as_array().into_iter().flatten().map(word).collect();
    if words.is_empty() { vec![sums] } else { vec![sums, words.join(between)] }
}

/// `issue (corrected) in name, description`.
fn word(told: &Value) -> String {
    let word = calm(told["word"].as_str().unwrap_or_default()).replace(['\n', '\t'], " ");
    let mark = if told["correction"] == true { " (corrected)" } else { "" };
    let places = told["places"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let places: Vec<String> = places.map(calm).collect();
    match places.as_slice() {
        [] => format!("{word}{mark} nowhere"),
        places => format!("{word}{mark} in {}", places.join("+")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::table;

    #[test]
    fn rows_and_explanations_fit_60_80_and_120_columns() {
        let explanation = json!({
            "parts": {"words": 1.25, "server_name": 6.8, "meaning": -0.3, "effect": 0.01},
            "sum": 7.75, "needed": 3.5,
            "words": [
                {"word": "issue", "correction": true, "places": ["name", "description"]},
                {"word": "yesterday", "correction": false, "places": []},
            ],
        });
        let tools = [
            json!({"name": "tracker_create_issue", "server": "tracker", "score": 0.914,
                "description": "\n Opens an issue ".to_owned() + &"and more ".repeat(20),
                "available": true, "explanation": explanation}),
            json!({"name": "a", "server": "b", "score": 0.2, "description": "c\u{1b}",
                "available": false}),
        ];
        for width in [60, 80, 120] {
            let text = table(&tools, width, false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
            let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains("server name 6.8 · words 1.2 · meaning -0.3"), "{text}");
            assert!(joined.contains("issue (corrected) in name+description"), "{text}");
            assert!(joined.contains("yesterday nowhere"), "{text}");
            assert!(joined.contains("✕ unavailable: c\\u{1b}"), "{text}");
        }
        assert!(table(&tools, 30, true).is_ascii());
    }
}
