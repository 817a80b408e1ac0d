//! The times of a schedule, with time zones. The domain decides what becomes of each.

use croner::parser::{CronParser, Seconds, Year};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use planwright_domain::{
    autonomy::schedule::Rhythm, chat::work::When, command::Missed, refusal::Refusal, time::Time,
};

/// So many missed slots are counted one by one; past that a schedule is late beyond counting.
const COUNTED_MAX: u64 = 1_000_000;

/// How long a schedule may wait between two slots.
const EVERY_MICROS: std::ops::RangeInclusive<i64> = 1_000_000..=100_000 * 86_400_000_000;

/// The longest cron expression: five fields with some lists in them.
const EXPRESSION_BYTES_MAX: usize = 200;

/// The rhythm behind the words, and its first slot after now.
pub(crate) fn rhythm(when: &When, now: Time) -> Result<(Rhythm, Time), Refusal> {
    if matches!(when, When::Every { micros } if !EVERY_MICROS.contains(micros)) {
        let why =
            "it repeats after a second at the least, and after a hundred thousand days at the most";
        return Err(Refusal::BadRhythm { why: why.into() });
    }
    let rhythm = match when.clone() {
        When::Cron { expression, zone } => Rhythm::Cron { expression, zone },
        When::Every { micros } => Rhythm::Every { micros, from: now },
        When::Once { at, zone } => Rhythm::Once { at, zone },
    };
    let first = next(&rhythm, now).map_err(|why| Refusal::BadRhythm { why })?;
    let none = || Refusal::BadRhythm { why: "it gives no time that is still to come".into() };
    let first = first.ok_or_else(none)?;
    Ok((rhythm, first))
}

/// The first slot after this time; none if there is none. In words, why a rhythm cannot be read.
///
/// A time of day that a change of the clocks leaves out is taken right after it; one that comes twice is taken
/// once.
pub fn next(rhythm: &Rhythm, after: Time) -> Result<Option<Time>, String> {
    match rhythm {
        Rhythm::Every { micros, from } => {
            let step = (*micros).max(1);
            let passed = (after.0 - from.0).div_euclid(step) + 1;
            Ok(Some(from.plus_micros(passed.max(1).saturating_mul(step))))
        }
        Rhythm::Once { at, zone } => {
            let local: DateTime = at.parse().map_err(|error: jiff::Error| error.to_string())?;
            let zoned = local.to_zoned(time_zone(zone)?).map_err(|error| error.to_string())?;
            let time = Time(zoned.timestamp().as_microsecond());
            Ok((time > after).then_some(time))
        }
        Rhythm::Cron { expression, zone } => {
            if expression.len() > EXPRESSION_BYTES_MAX {
                return Err(format!("the expression is longer than {EXPRESSION_BYTES_MAX} bytes"));
            }
            // Five fields: what begins each second is work without end.
            let parser =
                CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
            let cron = parser.parse(expression).map_err(|error| error.to_string())?;
            let from = Timestamp::from_microsecond(after.0).map_err(|error| error.to_string())?;
            let from = from.to_zoned(time_zone(zone)?);
            let found = cron.find_next_occurrence(&from, false);
            Ok(found.ok().map(|found| Time(found.timestamp().as_microsecond())))
        }
    }
}

fn time_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name)
        .map_err(|_| format!("there is no time zone {name:?}; name one like Europe/Berlin or UTC"))
}

/// What is due of a schedule whose next slot was then: the newest slot that has come, those before it, and the
/// one after it.
pub(crate) fn due(
    rhythm: &Rhythm,
    first: Time,
    now: Time,
) -> Result<(Option<Missed>, Time, Option<Time>), String> {
    let (mut slot, mut count, mut last) = (first, 0, None);
    let mut after = next(rhythm, slot)?;
    if let (Rhythm::Every { micros, .. }, Some(upcoming)) = (rhythm, after)
        && upcoming <= now
    {
        let many = (now.0 - slot.0) / micros;
        count = many.cast_unsigned();
        last = Some(slot.plus_micros((many - 1) * micros));
        slot = slot.plus_micros(many * micros);
        after = next(rhythm, slot)?;
    }
    while let Some(upcoming) = after.filter(|upcoming| *upcoming <= now && count < COUNTED_MAX) {
        (last, count) = (Some(slot), count + 1);
        slot = upcoming;
        after = next(rhythm, slot)?;
    }
    let missed = last.map(|last| Missed { first, last, count });
    Ok((missed, slot, after))
}

#[cfg(test)]
mod tests {
    use planwright_domain::{autonomy::schedule::Rhythm, command::Missed, time::Time};

    use super::{due, next};

    fn at(text: &str) -> Time {
        Time(text.parse::<jiff::Timestamp>().expect("a time").as_microsecond())
    }

    fn cron(expression: &str, zone: &str) -> Rhythm {
        Rhythm::Cron { expression: expression.into(), zone: zone.into() }
    }

    #[test]
    fn an_expression_has_five_fields_and_fits_a_line() {
        let long = format!("{} 9 * * *", vec!["0"; 200].join(","));
        for expression in ["* * * * * *", "0 9 * * * 2027", "* * * * * * *", &long] {
            assert!(next(&cron(expression, "UTC"), at("2026-11-16T09:00:00Z")).is_err());
        }
        assert!(next(&cron("0 9 * * 1-5", "UTC"), at("2026-11-16T09:00:00Z")).is_ok());
    }

    fn slots(rhythm: &Rhythm, from: &str, many: usize) -> Vec<String> {
        let mut time = at(from);
        let mut slots = Vec::new();
        for _ in 0..many {
            time = next(rhythm, time).expect("it is read").expect("there is one");
            slots.push(time.to_string());
        }
        slots
    }

    #[test]
    fn nine_in_berlin_is_nine_in_berlin_before_and_after_the_clocks_change() {
        let nine = cron("0 9 * * *", "Europe/Berlin");
        let found = slots(&nine, "2026-10-23T12:00:00Z", 3);
        assert_eq!(found, ["2026-10-24T07:00:00Z", "2026-10-25T08:00:00Z", "2026-10-26T08:00:00Z"]);
    }

    #[test]
    fn an_hour_that_is_left_out_loses_no_slot_and_one_that_comes_twice_gives_one() {
        let night = cron("30 2 * * *", "Europe/Berlin");
        let spring = slots(&night, "2026-03-28T12:00:00Z", 2);
        assert_eq!(spring.len(), 2);
        assert!(spring[0].starts_with("2026-03-29T01:"), "{spring:?}");
        assert!(spring[1].starts_with("2026-03-30T00:30"), "{spring:?}");
        let autumn = slots(&night, "2026-10-24T12:00:00Z", 2);
        assert_eq!(autumn, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    }

    #[test]
    fn what_was_missed_is_counted_and_the_newest_is_due() {
        let hourly = Rhythm::Every { micros: 3_600_000_000, from: at("2026-01-01T00:00:00Z") };
        let (first, now) = (at("2026-01-01T01:00:00Z"), at("2026-01-01T05:30:00Z"));
        let (missed, slot, after) = due(&hourly, first, now).expect("it is read");
        let last = at("2026-01-01T04:00:00Z");
        assert_eq!(missed, Some(Missed { first, last, count: 4 }));
        assert_eq!((slot, after), (at("2026-01-01T05:00:00Z"), Some(at("2026-01-01T06:00:00Z"))));
        let by_cron = due(&cron("0 * * * *", "UTC"), first, now).expect("it is read");
        assert_eq!(by_cron, (missed, slot, after));
        assert_eq!(due(&hourly, first, first), Ok((None, first, Some(at("2026-01-01T02:00:00Z")))));
    }

    #[test]
    fn what_cannot_be_read_is_said_in_words() {
        assert!(next(&cron("0 9 * *", "UTC"), Time(0)).is_err());
        let words = next(&cron("0 9 * * *", "Atlantis"), Time(0)).expect_err("no zone");
        assert!(words.contains("Europe/Berlin"), "{words}");
        let past = Rhythm::Once { at: "2020-01-01T00:00".into(), zone: "UTC".into() };
        assert_eq!(next(&past, at("2026-01-01T00:00:00Z")), Ok(None));
    }
}
