//! The results as a picture: a bar for each contestant at each work.

use super::results::{Results, Work};
use super::table::short;

const WIDTH: usize = 900;
/// Where bars begin, and how long the longest is.
const LEFT: usize = 110;
const BAR: f64 = 560.0;
const LINE: usize = 20;

/// Draws throughput, or the time where there is none, as SVG.
pub fn draw(results: &Results) -> String {
    let mut body = String::new();
    let mut top = 40;
    for work in &results.works {
        body += &format!(
            "<text x=\"10\" y=\"{top}\" font-weight=\"bold\">{}: {}</text>\n",
            work.letter,
            escape(&work.title)
        );
        let (bars, unit) = bars(work);
        let longest = bars.iter().map(|(_, value, ..)| *value).fold(f64::MIN_POSITIVE, f64::max);
        for (name, value, least, most) in bars {
            top += LINE;
            let length = |value: f64| value / longest * BAR;
            let (low, high) = (length(least), length(most) - length(least));
            let (bar, whisker, label) = (top - 12, top - 6, length(value.max(most)));
            let color = if name == "toolman" { "#1f6feb" } else { "#a9b1ba" };
            body += &format!(
                "<text x=\"{}\" y=\"{top}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"{LEFT}\" y=\"{bar}\" width=\"{:.1}\" height=\"14\" fill=\"{color}\"/>\
                 <rect x=\"{:.1}\" y=\"{whisker}\" width=\"{high:.1}\" height=\"2\" fill=\"#222\"/>\
                 <text x=\"{:.1}\" y=\"{top}\">{} {unit}</text>\n",
                LEFT - 8,
                escape(name),
                length(value),
                left() + low,
                left() + label + 8.0,
                short(value)
            );
        }
        top += LINE + 16;
    }
    let machine = escape(&results.machine);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{top}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"10\" y=\"18\">{machine}; median of {} rounds, the line spans all of them</text>\n{body}</svg>\n",
        results.rounds
    )
}

fn left() -> f64 {
    f64::from(u32::try_from(LEFT).unwrap_or_default())
}

/// Name, median, least and most of each contestant, and what they are counted in.
fn bars(work: &Work) -> (Vec<(&str, f64, f64, f64)>, &'static str) {
    let is_rate = work.rows.iter().any(|row| row.per_second.is_some());
    let figure = |row: &super::results::Row| if is_rate { row.per_second } else { row.p50_us };
    let bars = work.rows.iter().filter_map(|row| {
        let middle = figure(row)?;
        Some((row.name.as_str(), middle.median, middle.least, middle.most))
    });
    (bars.collect(), if is_rate { "a second" } else { "µs" })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::figures::Middle;
    use crate::run::results::{Results, Row, Work};

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let row = |name: &str, figure| Row {
            name: name.to_owned(),
            per_second: Middle::of([figure]),
            ..Row::default()
        };
        let rows = vec![row("a<b", 100.0), row("toolman", 50.0)];
        let work = Work { letter: 'a', title: "calls".to_owned(), rows };
        let svg = draw(&Results { works: vec![work], ..Results::default() });
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a&lt;b"));
        assert!(svg.contains("width=\"560.0\" height=\"14\" fill=\"#a9b1ba\""), "{svg}");
        assert!(svg.contains("width=\"280.0\" height=\"14\" fill=\"#1f6feb\""), "{svg}");
    }
}
