//! Plots for the page of figures: one bar an arm, on a logarithmic scale, as SVG.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

static WANTED: AtomicBool = AtomicBool::new(false);

/// From now on, figures are drawn into `docs/figures`.
pub(crate) fn want() {
    WANTED.store(true, Ordering::Relaxed);
}

/// Draws one bar an arm; arms that were not measured are left out.
pub(crate) fn bars(
    name: &str,
    title: &str,
    unit: &str,
    arms: &[(&str, f64)],
) -> anyhow::Result<()> {
    if !WANTED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let arms: Vec<_> = arms.iter().filter(|(_, value)| value.is_finite() && *value > 0.0).collect();
    let least = arms.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min).log10().floor();
    let most =
        arms.iter().map(|(_, value)| *value).fold(0.0, f64::max).log10().ceil().max(least + 1.0);
    let height = 60 + 34 * arms.len();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 {height}\" font-family=\"sans-serif\" font-size=\"14\">\n\
         <rect width=\"640\" height=\"{height}\" fill=\"#fff\"/>\n<text x=\"16\" y=\"28\" font-weight=\"bold\">{title} ({unit}, logarithmic)</text>\n"
    );
    for (at, (label, value)) in arms.iter().enumerate() {
        let (y, width) = (48 + 34 * at, 8.0 + 360.0 * (value.log10() - least) / (most - least));
        let colour = if at == 0 { "#2563eb" } else { "#94a3b8" };
        let shown = if *value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") };
        writeln!(svg, "<text x=\"16\" y=\"{}\">{label}</text>", y + 17)?;
        writeln!(
            svg,
            "<rect x=\"150\" y=\"{y}\" width=\"{width:.0}\" height=\"24\" rx=\"3\" fill=\"{colour}\"/>"
        )?;
        writeln!(svg, "<text x=\"{:.0}\" y=\"{}\">{shown}</text>", 158.0 + width, y + 17)?;
    }
    svg.push_str("</svg>\n");
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures");
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join(format!("{name}.svg")), svg)?;
    println!("drawn: docs/figures/{name}.svg");
    Ok(())
}
