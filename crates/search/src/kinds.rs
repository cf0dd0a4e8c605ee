//! Kinds of values: what a piece of data in a request is, and what a tool takes.
//!
//! `https://…` in a request says nothing by its letters, but it says that the tool takes a URL. A
//! kind is known by its form in a request, and by words of parameters and names in a tool. The
//! ending of a file name says more: `.csv` and `.xlsx` are tables.

use crate::words::Word;

/// A set of kinds, as bits.
pub(crate) type Kinds = u16;

pub(crate) const URL: Kinds = 1;
pub(crate) const FILE: Kinds = 1 << 1;
pub(crate) const EMAIL: Kinds = 1 << 2;
pub(crate) const MONEY: Kinds = 1 << 3;
pub(crate) const DATE: Kinds = 1 << 4;
pub(crate) const CHANNEL: Kinds = 1 << 5;
pub(crate) const TICKER: Kinds = 1 << 6;
pub(crate) const COORDINATES: Kinds = 1 << 7;
pub(crate) const ADDRESS: Kinds = 1 << 8;
pub(crate) const PERSON: Kinds = 1 << 9;
pub(crate) const REPOSITORY: Kinds = 1 << 10;
pub(crate) const IMAGE: Kinds = 1 << 11;
pub(crate) const TABLE: Kinds = 1 << 12;
pub(crate) const CODE: Kinds = 1 << 13;
pub(crate) const DOCUMENT: Kinds = 1 << 14;

/// How many kinds there are.
pub(crate) const COUNT: usize = 15;

/// Endings of file names and what such a file is.
const ENDINGS: &[(&[&str], Kinds)] = &[
    (&["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "heic", "tiff"], FILE | IMAGE),
    (&["csv", "tsv", "xlsx", "xls", "ods", "parquet"], FILE | TABLE),
    (&["rs", "py", "js", "ts", "tsx", "jsx", "go", "java", "rb", "cpp", "sh", "php"], FILE | CODE),
    (&["pdf", "doc", "docx", "odt", "rtf", "ppt", "pptx", "md", "epub"], FILE | DOCUMENT),
    (&["txt", "log", "json", "yaml", "yml", "toml", "xml", "html", "ini", "zip", "tar"], FILE),
    (&["mp3", "wav", "mp4", "mov", "m4a", "flac", "env", "lock", "bak", "sql", "db"], FILE),
];

/// What words of a tool's name and parameters say that it takes.
const TAKES: &[(&str, Kinds)] = &[
    ("address", ADDRESS | EMAIL),
    ("amount", MONEY),
    ("assignee", PERSON),
    ("attendees", PERSON | EMAIL),
    ("author", PERSON),
    ("budget", MONEY),
    ("channel", CHANNEL),
    ("city", ADDRESS),
    ("code", CODE),
    ("content", FILE),
    ("contents", FILE),
    ("coordinates", COORDINATES),
    ("cost", MONEY),
    ("csv", TABLE | FILE),
    ("currency", MONEY),
    ("customer", PERSON),
    ("date", DATE),
    ("datetime", DATE),
    ("day", DATE),
    ("deadline", DATE),
    ("destination", ADDRESS | FILE),
    ("directory", FILE),
    ("document", DOCUMENT | FILE),
    ("domain", URL),
    ("due", DATE),
    ("email", EMAIL),
    ("emails", EMAIL),
    ("end", DATE),
    ("excel", TABLE | FILE),
    ("file", FILE),
    ("filename", FILE),
    ("filepath", FILE),
    ("files", FILE),
    ("folder", FILE),
    ("html", URL),
    ("image", IMAGE),
    ("images", IMAGE),
    ("lat", COORDINATES),
    ("latitude", COORDINATES),
    ("link", URL),
    ("lng", COORDINATES),
    ("location", ADDRESS | COORDINATES),
    ("lon", COORDINATES),
    ("longitude", COORDINATES),
    ("member", PERSON),
    ("money", MONEY),
    ("navigate", URL),
    ("origin", ADDRESS),
    ("owner", REPOSITORY | PERSON),
    ("page", URL),
    ("path", FILE),
    ("paths", FILE),
    ("payment", MONEY),
    ("pdf", DOCUMENT | FILE),
    ("person", PERSON),
    ("photo", IMAGE),
    ("picture", IMAGE),
    ("place", ADDRESS),
    ("price", MONEY),
    ("recipient", EMAIL | PERSON),
    ("recipients", EMAIL | PERSON),
    ("repo", REPOSITORY),
    ("repository", REPOSITORY),
    ("room", CHANNEL),
    ("screenshot", URL),
    ("script", CODE),
    ("sheet", TABLE),
    ("site", URL),
    ("source", FILE),
    ("spreadsheet", TABLE | FILE),
    ("start", DATE),
    ("stock", TICKER),
    ("street", ADDRESS),
    ("symbol", TICKER),
    ("table", TABLE),
    ("ticker", TICKER),
    ("time", DATE),
    ("to", EMAIL | PERSON),
    ("uri", URL),
    ("url", URL),
    ("urls", URL),
    ("user", PERSON),
    ("username", PERSON),
    ("webpage", URL),
    ("website", URL),
    ("workbook", TABLE | FILE),
];

/// Signs of money.
const CURRENCIES: [char; 6] = ['$', '€', '£', '¥', '₹', '₿'];
/// Names of months and their usual short forms.
const MONTHS: &[&str] = &[
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// Days as people name them.
const DAYS: &[&str] = &[
    "today",
    "tomorrow",
    "yesterday",
    "tonight",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// The kinds of one piece of a request: a run without white space, or a quotation.
pub(crate) fn of_piece(piece: &str) -> Kinds {
    let lower = piece.to_lowercase();
    if lower.starts_with(['"', '“', '«', '`', '\'', '‘']) {
        return file(lower.trim_matches(|c: char| !c.is_alphanumeric()));
    }
    if lower.contains("://") || lower.starts_with("www.") {
        return URL;
    }
    if lower.contains('@') && lower.rsplit('@').next().is_some_and(|host| host.contains('.')) {
        return EMAIL;
    }
    if piece.starts_with('@') {
        return PERSON;
    }
    if let Some(name) = piece.strip_prefix('#') {
        let is_channel = name.chars().any(char::is_alphabetic);
        return if is_channel { CHANNEL } else { 0 };
    }
    if piece.starts_with(CURRENCIES) || piece.ends_with(CURRENCIES) {
        let name = piece.trim_matches(CURRENCIES);
        let is_ticker = !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase());
        return if is_ticker { TICKER } else { MONEY };
    }
    file(&lower) | date(&lower) | place(piece)
}

/// What a file name or a path says.
fn file(lower: &str) -> Kinds {
    let by_ending = lower.rsplit_once('.').filter(|(name, _)| !name.is_empty());
    let known = by_ending.and_then(|(_, ending)| {
        ENDINGS.iter().find(|(endings, _)| endings.contains(&ending)).map(|(_, kinds)| *kinds)
    });
    let slashes = lower.matches(['/', '\\']).count();
    let is_path = lower.starts_with(['/', '~']) && lower.len() > 1 || slashes >= 2;
    let is_repository = slashes == 1 && !lower.contains(['.', '~', ':']) && !lower.starts_with('/');
    let is_dated = lower.chars().any(|c| c.is_numeric()) && date(lower) != 0;
    match (known, is_path) {
        (Some(kinds), _) => kinds,
        (None, true) if !is_dated => FILE,
        (None, _) if is_repository && !is_dated => REPOSITORY,
        _ => 0,
    }
}

/// `2026-03-01`, `3/14/2026`, `10:30`, `5pm`.
fn date(lower: &str) -> Kinds {
    let digits = lower.chars().filter(char::is_ascii_digit).count();
    let rest: String = lower.chars().filter(|c| !c.is_ascii_digit()).collect();
    let is_date = digits >= 6 && matches!(rest.as_str(), "--" | "//" | ".." | "--t::z" | "--t:");
    let is_time = (digits >= 1 && matches!(rest.as_str(), "am" | "pm" | ":am" | ":pm"))
        || (digits >= 3 && rest == ":");
    let is_named = MONTHS.contains(&lower) && lower != "may" && lower != "march";
    if is_date || is_time || is_named || DAYS.contains(&lower) { DATE } else { 0 }
}

/// `48.85,2.35`, and `NVDA`: short words of capitals may be tickers, and mostly are not.
fn place(piece: &str) -> Kinds {
    let is_pair = piece.split_once(',').is_some_and(|(one, other)| {
        let is_degree = |text: &str| text.contains('.') && text.trim().parse::<f32>().is_ok();
        is_degree(one) && is_degree(other)
    });
    if is_pair { COORDINATES } else { 0 }
}

/// What a tool takes, by the words of its name and of its parameters.
pub(crate) fn of_tool(words: &[&[Word]]) -> Kinds {
    let words = words.iter().copied().flatten();
    words.fold(0, |kinds, word| {
        let at = TAKES.binary_search_by(|(known, _)| (*known).cmp(&word.text));
        kinds | at.map_or(0, |at| TAKES[at].1)
    })
}

/// How rare each kind is among tools: what taking it says of one.
pub(crate) fn rarities(tools: &[Kinds], rarity: impl Fn(usize) -> f32) -> [f32; COUNT] {
    std::array::from_fn(|bit| {
        rarity(tools.iter().filter(|kinds| **kinds & (1 << bit) != 0).count())
    })
}

/// Which share of a request's kinds a tool takes, each by how rare it is; 0 without any.
pub(crate) fn likeness(asked: Kinds, takes: Kinds, rarities: &[f32; COUNT]) -> f32 {
    let sum = |kinds: Kinds| -> f32 {
        let bits = (0..COUNT).filter(|bit| kinds & (1 << bit) != 0);
        bits.map(|bit| rarities[bit]).sum()
    };
    if asked == 0 { 0.0 } else { sum(asked & takes) / sum(asked).max(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    #[test]
    fn the_table_is_sorted_and_without_doubles() {
        assert!(TAKES.is_sorted_by(|one, next| one.0 < next.0));
    }

    #[test]
    fn values_are_known_by_their_form() {
        for (piece, kinds) in [
            ("https://example.com/a", URL),
            ("www.example.com", URL),
            ("jane@example.com", EMAIL),
            ("@jane", PERSON),
            ("#general", CHANNEL),
            ("#42", 0),
            ("$40", MONEY),
            ("20€", MONEY),
            ("$NVDA", TICKER),
            ("report.pdf", FILE | DOCUMENT),
            ("~/notes/a.csv", FILE | TABLE),
            ("/etc/hosts", FILE),
            ("acme/website", REPOSITORY),
            ("2026-03-01", DATE),
            ("3/14/2026", DATE),
            ("5pm", DATE),
            ("tomorrow", DATE),
            ("48.85,2.35", COORDINATES),
            ("\"hello there\"", 0),
            ("'main.py'", FILE | CODE),
            ("word", 0),
            ("", 0),
        ] {
            assert_eq!(of_piece(piece), kinds, "{piece}");
        }
    }

    #[test]
    fn a_tool_that_takes_a_rare_kind_is_likelier() {
        let takes = [of_tool(&[&words("url")]), of_tool(&[&words("text title")]), 0];
        let rarities = rarities(&takes, |holding| 3.0 - holding as f32);
        assert!(likeness(URL, takes[0], &rarities) > likeness(URL, takes[1], &rarities));
        assert_eq!(likeness(0, takes[0], &rarities), 0.0);
    }
}
