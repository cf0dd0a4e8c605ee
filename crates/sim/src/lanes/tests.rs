//! Tests of the picture: widths, merging, ASCII, axis and marks.

use super::*;

fn cell(attempts: u32) -> Cell {
    Cell { attempts, of: 8, ..Cell::default() }
}

fn picture(cells: Vec<Cell>, shows_share: bool) -> Picture {
    let lane = Lane { name: "gpt".to_owned(), state: State::Closed, shows_share, cells };
    Picture { from: Now(0), to: Now(600_000), lanes: vec![lane], marks: Vec::new() }
}

fn row(cells: Vec<Cell>, shows_share: bool, width: usize) -> String {
    let lines = picture(cells, shows_share).draw(width, &LaneGlyphs::UNICODE, Paint::default());
    lines[1].chars().skip(6).collect()
}

#[test]
fn the_worst_of_merged_cells_shows() {
    let mut cells = vec![cell(1); 160];
    cells[10].was_open = true;
    cells[11].was_open = true;
    cells[11].was_half_open = true;
    cells[41].had_trouble = true;
    let shown = row(cells, false, 22);
    assert_eq!(shown, "█◐██▓███████████");
}

#[test]
fn shares_and_idle_cells_have_characters_of_their_own() {
    let cells = vec![cell(0), cell(1), cell(4), cell(8)];
    assert_eq!(row(cells, true, 22), "····▂▂▂▂▅▅▅▅████");
}

#[test]
fn no_line_is_wider_than_asked_for() {
    let mut picture = picture(vec![cell(1); 480], false);
    picture.lanes[0].name = "a/very-long-name-of-a-model-that-nobody-can-remember".to_owned();
    for at in (0..=600_000).step_by(7_777) {
        picture.marks.push(Mark { at: Now(at), text: format!("{at} something happened") });
    }
    for width in [24, 60, 80, 120, 500] {
        for glyphs in [&LaneGlyphs::UNICODE, &LaneGlyphs::ASCII] {
            for line in picture.draw(width, glyphs, Paint::default()) {
                let length = line.chars().count();
                assert!(length <= width.max(60), "{width}: {length}: {line}");
            }
        }
    }
}

#[test]
fn ascii_pictures_are_ascii() {
    let mut cells = vec![cell(1); 16];
    (cells[1].was_open, cells[2].was_half_open, cells[3].had_trouble) = (true, true, true);
    let mut picture = picture(cells, true);
    picture.lanes[0].name = "a/very-long-name-of-a-model-that-nobody-can-remember".to_owned();
    picture.marks.push(Mark { at: Now(5), text: "opened".to_owned() });
    let text = picture.draw(60, &LaneGlyphs::ASCII, Paint::default()).join("\n")
        + &picture.legend(&LaneGlyphs::ASCII);
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn axis_labels_are_round_and_apart() {
    let line = axis::draw(Now(0), Now(600_000), 4, 60);
    assert_eq!(line, "    0s          2m          4m          6m          8m       10m");
    let line = axis::draw(Now(115_000), Now(155_000), 0, 40);
    assert_eq!(line, "     2m        2m10s     2m20s     2m30s");
}

#[test]
fn a_span_of_nothing_or_of_a_century_is_drawn() {
    for (from, to) in [(0, 0), (5, 5), (0, 1), (0, 100 * 365 * 86_400_000)] {
        let picture = Picture { from: Now(from), to: Now(to), ..picture(vec![cell(1)], false) };
        assert!(picture.draw(80, &LaneGlyphs::UNICODE, Paint::default()).len() >= 2);
    }
}

#[test]
fn a_mark_near_the_edge_has_its_words_before_the_arrow() {
    let mut picture = picture(vec![cell(1)], false);
    picture.marks.push(Mark { at: Now(300_000), text: "5m slow".to_owned() });
    picture.marks.push(Mark { at: Now(600_000), text: "10m closed".to_owned() });
    let lines = picture.draw(53, &LaneGlyphs::UNICODE, Paint::default());
    let words: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(words, ["▲5m", "slow", "10m", "closed▲"]);
}

#[test]
fn an_arrow_stands_below_its_moment_at_every_width() {
    let mut picture = picture(vec![cell(1); 480], false);
    for at in [0, 100_000, 300_000, 450_000, 600_000] {
        let text = format!("{at} opened: 3 x transport in a row, and more words than fit");
        picture.marks = vec![Mark { at: Now(at), text }];
        for width in [24, 40, 60, 80, 120] {
            let lines = picture.draw(width, &LaneGlyphs::UNICODE, Paint::default());
            let layout = picture.layout(width);
            let column = axis::column(picture.from, picture.to, layout.columns, Now(at));
            let arrow = lines[2].chars().position(|c| c == '▲');
            assert_eq!(arrow, Some(layout.indent() + column), "{width}, {at}: {}", lines[2]);
        }
    }
}
