//! Every named limit of the domain, in one place, so that a refusal can quote it.

/// The longest Markdown document of one revision.
pub const PLAN_MARKDOWN_BYTES_MAX: usize = 256 * 1024;
/// The longest title of a revision.
pub const TITLE_BYTES_MAX: usize = 200;
/// The longest message a person may send.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// How many causes may wait in one session.
pub const QUEUE_MAX: usize = 1_000;
/// How many comments or notes one decision may carry.
pub const COMMENTS_MAX: usize = 200;
/// The longest comment, note or reason.
pub const COMMENT_BYTES_MAX: usize = 8 * 1024;
/// Of all comments of a plan that wait for the next request for changes.
pub const POSTED_BYTES_MAX: usize = 64 * 1024;
/// Of those and of what is settled: whoever opens a thread again finds it as it was.
pub const POSTED_AND_SETTLED_BYTES_MAX: usize = 256 * 1024;
/// How many comments a plan may have, with replies.
pub const COMMENTS_OF_PLAN_MAX: usize = 5_000;
/// The longest difference between what a file held and what it holds now that is recorded.
pub const DIFF_BYTES_MAX: usize = 64 * 1024;
/// How far down a front matter may end.
pub const FRONT_MATTER_LINES_MAX: usize = 32;
/// The most that one approval may lease.
pub const SPEND_DOLLARS_MAX: f64 = 1_000_000.0;
/// The longest time that one approval may lease for: ten years.
pub const LEASE_MICROS_MAX: i64 = 3_650 * 86_400 * 1_000_000;
/// How many grants one plan keeps beside its approval.
pub const GRANTS_MAX: usize = 64;
/// How many steps one plan may have.
pub const STEPS_MAX: usize = 200;
/// The longest arguments of one recorded call, or instructions of one step.
pub const STEP_BYTES_MAX: usize = 64 * 1024;
/// How many entries one list of a plan's metadata may have.
pub const METADATA_MAX: usize = 50;
/// The longest entry of a plan's metadata, and the longest goal.
pub const METADATA_BYTES_MAX: usize = 2 * 1024;
/// The longest summary of a recorded plan.
pub const SUMMARY_BYTES_MAX: usize = 8 * 1024;
/// How many tool calls one answer of the model may hold.
pub const CALLS_PER_ANSWER_MAX: usize = 64;
/// How often the model may be asked in one turn.
pub const MODEL_ROUNDS_MAX: u32 = 60;
/// How often one model call is tried before its turn is suspended, or fails.
pub const MODEL_ATTEMPTS_MAX: u32 = 4;
/// The longest output of one tool call that the model reads whole.
pub const TOOL_OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// The longest output of one tool call that is kept whole beside the journal.
pub const KEPT_OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many touched things a plan lists by name; past that they are only counted.
pub const TOUCHED_MAX: usize = 200;
/// How many rows the memory of what was shown keeps for one plan.
pub const SHOWN_MAX: usize = 64;
/// The longest part of a revision that is read as one block, in lines.
pub const BLOCK_LINES_MAX: usize = 24;
/// How many blocks one revision may have, and how many one report of what was seen may name.
pub const BLOCKS_MAX: usize = 1_024;
/// How many blocks one plan remembers as seen, of all its readers together.
pub const BLOCKS_SEEN_MAX: usize = 4 * BLOCKS_MAX;
/// How many goals may be open in one session.
pub const GOALS_MAX: usize = 50;
/// How many tasks one session keeps.
pub const TASKS_MAX: usize = 200;
/// How many runs one session may have.
pub const RUNS_MAX: usize = 20;
/// How many schedules one session may have.
pub const SCHEDULES_MAX: usize = 50;
/// The longest title of a goal, a task or a session.
pub const WORK_TITLE_BYTES_MAX: usize = 2 * 1024;
/// The shortest interval of a schedule.
pub const INTERVAL_MICROS_MIN: i64 = 60 * 1_000_000;
/// How long after its time a slot may begin, so that many do not begin at once.
pub const JITTER_MICROS_MAX: i64 = 5 * 1_000_000;
/// How many observations a run remembers, to notice that it goes in circles.
pub const OBSERVATIONS_MAX: usize = 256;
/// How often the same call may give the same observation before a run is parked.
pub const SAME_OBSERVATION_MAX: u32 = 3;
/// How many turns of a run in a row may bring nothing.
pub const IDLE_TURNS_MAX: u32 = 3;
/// How many chats one owner may have.
pub const POINTERS_MAX: usize = 10_000;
/// The longest text that is remembered.
pub const MEMORY_BYTES_MAX: usize = 4 * 1024;
/// How many things one owner may make known everywhere.
pub const GLOBAL_MEMORY_MAX: usize = 2_000;
/// The longest word that is looked up.
pub const WORD_CHARS_MAX: usize = 40;
/// How many letters a word has at least by whose beginning others are found.
pub const BEGINNING_CHARS_MIN: usize = 3;
/// How many words of one message or plan it is found by.
pub const SEARCHED_WORDS_MAX: usize = 10_000;
/// How many words of a question are looked up.
pub const QUESTION_WORDS_MAX: usize = 64;
/// The longest page of a notebook.
pub const PAGE_BYTES_MAX: usize = 256 * 1024;
/// How much of a result one line of a notebook holds.
pub const NOTE_CHARS_MAX: usize = 240;
/// How often one model is tried before another one is asked, where there is one.
pub const MODEL_TRIES_BEFORE_ANOTHER: u32 = 2;
/// How long a turn waits for a model that cannot be reached before it fails: six hours.
pub const SUSPENDED_MICROS_MAX: i64 = 6 * 3_600 * 1_000_000;
/// How often a request is made smaller because a server said that it is too large.
pub const HALVED_MAX: u32 = 3;
/// The longest summary of what was said before.
pub const SUMMARY_VIEW_BYTES_MAX: usize = 64 * 1024;
/// How many models a session remembers the measure of.
pub const MEASURES_MAX: usize = 8;
/// How many notebook calls of a foreign agent may be open at once.
pub const AGENT_CALLS_OPEN_MAX: usize = 32;

/// After so many failures in a row a session is parked.
pub const FAILURES_MAX: u32 = 8;
/// The longest name of a person.
pub const PERSON_BYTES_MAX: usize = 80;
/// How many people one installation knows.
pub const PEOPLE_MAX: usize = 1_000;
