//! Who uses the installation, what each may do, and how a passphrase comes to be theirs.

use std::collections::BTreeSet;

use planwright_domain::{
    actor::{OWNER, Person, PersonId, Standing},
    command::{
        Approving, Decision, HoldReason, Permit, PersonCommand, SessionCommand, SystemCommand,
    },
    digest::Digest,
    effect::Declared,
    id::{GrantId, Seq},
    identity::ChannelType,
    installation::{
        Account, AccountRefusal, GRANTS_OF_A_KIND_MAX, Grant, Installation, InstallationCommand,
        InstallationEvent, Invitation, NewGrant, RESET_TOLD_MICROS, Requester, Role,
        TERMINAL_MICROS, decide, named_well,
    },
    log::SessionHead,
    plan::{PauseReason, PlanStatus, Progress, refusal::PlanRefusal},
    policy::Policy,
    refusal::Refusal,
    session::life::may_promote,
    time::Time,
};
use proptest::prelude::*;
use uuid::Uuid;

use crate::given::*;

fn person(name: &str) -> PersonId {
    PersonId(name.into())
}

fn hash(of: &str) -> Digest {
    Digest::of(of.as_bytes())
}

fn link(secret: &str, until: i64) -> Invitation {
    Invitation { secret: hash(secret), until: Time(until) }
}

fn chooses_first(name: &str, passphrase: &str) -> InstallationCommand {
    InstallationCommand::ChooseFirst { person: person(name), hash: hash(passphrase) }
}

fn by(name: &str) -> Requester {
    Requester { person: person(name), age_micros: Some(0), age_micros_max: 60_000_000 }
}

/// An installation with what these commands did.
struct Told(Installation);

impl Told {
    fn new() -> Self {
        Self(Installation::default())
    }

    fn told(&mut self, command: InstallationCommand) -> Result<(), AccountRefusal> {
        let events = decide(&self.0, &command)?;
        self.0 = self.0.fold(Time(1), &events).unwrap();
        Ok(())
    }

    fn chosen() -> Self {
        let mut told = Self::new();
        told.told(chooses_first(OWNER, "owner's")).unwrap();
        told
    }

    fn add(&mut self, name: &str, roles: &[Role]) -> Result<(), AccountRefusal> {
        let (person, roles) = (person(name), roles.iter().copied().collect());
        let invitation = link(name, 100);
        self.told(InstallationCommand::Add { person, roles, invitation, by: by(OWNER) })
    }
}

#[test]
fn the_owner_is_there_from_the_start_and_nobody_decides_before_a_passphrase_is_chosen() {
    let told = Told::new();
    let owner = told.0.account(&person(OWNER)).unwrap();
    assert_eq!(owner.roles, BTreeSet::from(Role::ALL));
    assert!(!told.0.is_chosen());
    assert!(Told::chosen().0.is_chosen());
}

/// Invariant: `one-choice`
#[test]
fn a_first_passphrase_is_chosen_once() {
    let mut told = Told::chosen();
    for again in [
        chooses_first(OWNER, "thief's"),
        InstallationCommand::InviteOwner { invitation: link("thief's", 100) },
    ] {
        assert_eq!(told.told(again), Err(AccountRefusal::AlreadyChosen));
    }
    let owner = told.0.account(&person(OWNER)).unwrap();
    assert_eq!(owner.passphrase, Some(hash("owner's")));
    let mut told = Told::new();
    assert_eq!(told.told(chooses_first("ada", "ada's")), Err(AccountRefusal::NotTheOwner));
}

/// Invariant: `one-choice`
#[test]
fn a_link_works_once_and_until_its_end() {
    let accept = |secret: &str, now| InstallationCommand::Accept {
        secret: hash(secret),
        hash: hash("hers"),
        now: Time(now),
    };
    let mut told = Told::chosen();
    told.add("bea", &[Role::Decide]).unwrap();
    assert_eq!(told.told(accept("another", 1)), Err(AccountRefusal::BadLink));
    assert_eq!(told.told(accept("bea", 100)), Err(AccountRefusal::BadLink), "it has ended");
    told.told(accept("bea", 99)).unwrap();
    assert_eq!(told.told(accept("bea", 99)), Err(AccountRefusal::BadLink), "it was used");
    let bea = told.0.account(&person("bea")).unwrap();
    assert_eq!((bea.passphrase, bea.standing()), (Some(hash("hers")), Standing::Decides));
}

#[test]
fn another_link_leaves_the_passphrase_until_it_is_used_and_then_ends_the_logins() {
    let mut told = Told::chosen();
    told.add("bea", &[]).unwrap();
    let accept = |secret: &str, of: &str| InstallationCommand::Accept {
        secret: hash(secret),
        hash: hash(of),
        now: Time(1),
    };
    told.told(accept("bea", "first")).unwrap();
    let before = told.0.version;
    let invitation = link("second", 100);
    told.told(InstallationCommand::Invite { person: person("bea"), invitation, by: by(OWNER) })
        .unwrap();
    let bea = |told: &Told| told.0.account(&person("bea")).unwrap().clone();
    assert_eq!(bea(&told).passphrase, Some(hash("first")));
    assert!(bea(&told).passphrase_since <= before, "nothing has ended");
    told.told(accept("second", "second")).unwrap();
    assert_eq!(bea(&told).passphrase, Some(hash("second")));
    assert!(bea(&told).passphrase_since > before, "logins from before have ended");
}

#[test]
fn a_passphrase_is_changed_by_who_gave_the_one_that_holds() {
    let mut told = Told::chosen();
    let change = |old: &str| InstallationCommand::Change {
        person: person(OWNER),
        old: hash(old),
        hash: hash("new"),
    };
    assert_eq!(told.told(change("thief's")), Err(AccountRefusal::Outdated));
    told.told(change("owner's")).unwrap();
    assert_eq!(told.told(change("owner's")), Err(AccountRefusal::Outdated));
    told.add("bea", &[]).unwrap();
    let none = InstallationCommand::Change { person: person("bea"), old: hash(""), hash: hash("") };
    assert_eq!(told.told(none), Err(AccountRefusal::NoneChosen { person: "bea".into() }));
}

/// Invariant: `one-choice`
#[test]
fn a_reset_ends_the_logins_of_everyone_and_is_told_for_seven_days() {
    let mut told = Told::chosen();
    told.add("bea", &[Role::Decide]).unwrap();
    let before = told.0.version;
    let (now, end) = (Time(1_000), Time(1_000 + RESET_TOLD_MICROS));
    let reset =
        |name: &str| InstallationCommand::Reset { person: person(name), hash: hash("x"), now };
    assert_eq!(told.0.recent_reset(now), None);
    assert_eq!(
        told.told(reset("carol")),
        Err(AccountRefusal::NoSuchPerson { person: "carol".into() })
    );
    told.told(reset(OWNER)).unwrap();
    let has_ended =
        |account: &Account| account.passphrase_since > before && account.invitation.is_none();
    assert!(told.0.people.values().all(has_ended), "logins and links");
    assert_eq!(told.0.recent_reset(now).unwrap().person, person(OWNER));
    assert!(told.0.recent_reset(Time(end.0 - 1)).is_some() && told.0.recent_reset(end).is_none());
}

#[test]
fn only_an_administrator_who_gave_their_passphrase_lately_says_who_uses_it() {
    let mut told = Told::chosen();
    told.add("admin", &[Role::Admin]).unwrap();
    told.add("bea", &[Role::Decide]).unwrap();
    let asks = |by: Requester| {
        [
            InstallationCommand::Add {
                person: person("new"),
                roles: BTreeSet::new(),
                invitation: link("l", 9),
                by: by.clone(),
            },
            InstallationCommand::Invite {
                person: person("bea"),
                invitation: link("l", 9),
                by: by.clone(),
            },
            InstallationCommand::SetRoles {
                person: person("bea"),
                roles: [Role::Admin].into(),
                by: by.clone(),
            },
            InstallationCommand::Remove { person: person("bea"), by },
        ]
    };
    for command in asks(by("bea")) {
        let refused = decide(&told.0, &command).unwrap_err();
        assert_eq!(refused, AccountRefusal::NotAnAdmin { person: "bea".into() });
    }
    for age_micros in [None, Some(60_000_001)] {
        for command in asks(Requester { age_micros, ..by("admin") }) {
            let refused = decide(&told.0, &command).unwrap_err();
            assert_eq!(refused, AccountRefusal::AskAgain { minutes: 1 });
        }
    }
    for command in asks(Requester { age_micros: Some(60_000_000), ..by("admin") }) {
        assert!(decide(&told.0, &command).is_ok(), "{command:?}");
    }
}

/// Invariant: `an-owner`
#[test]
fn the_owner_is_neither_removed_nor_given_fewer_roles_nor_another_link() {
    let mut told = Told::chosen();
    told.add("admin", &[Role::Admin]).unwrap();
    let (owner, by) = (person(OWNER), by("admin"));
    for command in [
        InstallationCommand::Remove { person: owner.clone(), by: by.clone() },
        InstallationCommand::SetRoles {
            person: owner.clone(),
            roles: [Role::Decide].into(),
            by: by.clone(),
        },
    ] {
        assert_eq!(told.told(command), Err(AccountRefusal::OwnerStays));
    }
    let invite = InstallationCommand::Invite { person: owner, invitation: link("l", 9), by };
    assert_eq!(told.told(invite), Err(AccountRefusal::OwnerNotInvited));
}

#[test]
fn who_is_removed_and_added_again_is_somebody_new() {
    let mut told = Told::chosen();
    told.add("bea", &[Role::Decide]).unwrap();
    assert_eq!(told.add("bea", &[]), Err(AccountRefusal::AlreadyThere { person: "bea".into() }));
    told.give(1, "bea", Given::Token).unwrap();
    told.told(InstallationCommand::Remove { person: person("bea"), by: by(OWNER) }).unwrap();
    assert_eq!(told.0.account(&person("bea")), None);
    told.add("bea", &[]).unwrap();
    let again = told.0.account(&person("bea")).unwrap();
    assert_eq!((again.passphrase, again.standing()), (None, Standing::Speaks));
    assert_eq!(told.standing(1), None, "a token of the first one");
    assert_eq!(told.standing(99), None, "one that nobody gave");
    // Who gave the passphrase of the first one while the second one came gave another one.
    let outdated = told.new_grant(2, "bea", Given::Login { known: Seq(1) });
    let outdated = InstallationCommand::Give { grant: outdated, now: Time(2) };
    assert_eq!(told.told(outdated), Err(AccountRefusal::Outdated));
    told.give(3, "bea", Given::Token).unwrap();
    assert_eq!(told.standing(3), Some(Standing::Speaks));
}

/// What is given in a scenario.
#[derive(Clone, Copy)]
enum Given {
    Token,
    Login { known: Seq },
}

fn grant_id(id: u128) -> GrantId {
    Uuid::from_u128(id).into()
}

impl Told {
    fn new_grant(&self, id: u128, name: &str, given: Given) -> NewGrant {
        let authenticated = match given {
            Given::Token => None,
            Given::Login { known } => Some((Time(1), known)),
        };
        NewGrant {
            id: grant_id(id),
            person: person(name),
            standing: if authenticated.is_some() { Standing::Decides } else { Standing::Speaks },
            surface: ChannelType::Web,
            expires: authenticated.map(|_| Time(50)),
            authenticated,
            is_page: authenticated.is_some(),
            token: None,
            details: hash(&id.to_string()),
        }
    }

    fn give(&mut self, id: u128, name: &str, given: Given) -> Result<(), AccountRefusal> {
        let grant = self.new_grant(id, name, given);
        self.told(InstallationCommand::Give { grant, now: Time(2) })
    }

    fn log_in(&mut self, id: u128, name: &str) -> Result<(), AccountRefusal> {
        self.give(id, name, Given::Login { known: self.0.version })
    }

    fn standing(&self, id: u128) -> Option<Standing> {
        self.0.grant(grant_id(id), Time(3)).map(|(_, standing)| standing)
    }

    fn revoke(&mut self, id: u128, with: u128) -> Result<(), AccountRefusal> {
        let (id, with) = (grant_id(id), grant_id(with));
        self.told(InstallationCommand::Revoke { id, with, now: Time(3) })
    }
}

/// Invariant: `recorded-grants`
#[test]
fn a_grant_is_good_from_its_entry_on_until_it_ends_or_is_taken_back() {
    let mut told = Told::chosen();
    told.add("bea", &[]).unwrap();
    told.log_in(1, OWNER).unwrap();
    told.give(2, "bea", Given::Token).unwrap();
    let page = NewGrant { token: Some(grant_id(2)), ..told.new_grant(3, "bea", Given::Token) };
    told.told(InstallationCommand::Give { grant: page, now: Time(2) }).unwrap();
    assert_eq!(told.standing(3), Some(Standing::Speaks));
    assert_eq!(
        told.0.grant(grant_id(1), Time(49)).map(|(_, standing)| standing),
        Some(Standing::Decides)
    );
    assert_eq!(told.0.grant(grant_id(1), Time(50)), None, "its time is over");
    assert_eq!(told.revoke(1, 2), Err(AccountRefusal::NeedsPassphrase));
    assert_eq!(told.revoke(99, 1), Err(AccountRefusal::NoSuchGrant));
    assert_eq!(told.revoke(2, 99), Err(AccountRefusal::NoSuchGrant));
    told.revoke(2, 1).unwrap();
    assert_eq!((told.standing(2), told.standing(3)), (None, None), "and what was made with it");
    told.revoke(1, 1).unwrap();
    assert_eq!(told.revoke(1, 1), Err(AccountRefusal::NoSuchGrant));
}

#[test]
fn nobody_takes_back_what_is_of_somebody_whom_they_do_not_manage() {
    let mut told = Told::chosen();
    told.add("bea", &[Role::Decide]).unwrap();
    told.add("carol", &[Role::Decide]).unwrap();
    told.log_in(1, "bea").unwrap();
    told.log_in(2, "carol").unwrap();
    told.log_in(3, OWNER).unwrap();
    assert_eq!(told.revoke(2, 1), Err(AccountRefusal::NoSuchGrant), "as if it were not there");
    told.revoke(2, 3).unwrap();
    let end = |person: &str| InstallationCommand::EndPlace {
        id: grant_id(1),
        person: PersonId(person.into()),
        now: Time(3),
    };
    assert_eq!(told.told(end("carol")), Err(AccountRefusal::NoSuchGrant));
    told.told(end("bea")).unwrap();
    told.told(end("bea")).unwrap();
    assert_eq!(told.standing(1), None);
}

#[test]
fn a_login_is_renewed_while_it_is_there_and_a_token_is_none() {
    let mut told = Told::chosen();
    told.log_in(1, OWNER).unwrap();
    told.give(2, OWNER, Given::Token).unwrap();
    let renew = |told: &Told, id| InstallationCommand::Renew {
        id: grant_id(id),
        standing: Standing::Decides,
        known: told.0.version,
        now: Time(3),
    };
    let early = renew(&told, 1);
    told.told(renew(&told, 1)).unwrap();
    assert_eq!(told.told(renew(&told, 2)), Err(AccountRefusal::NotALogin));
    told.revoke(1, 1).unwrap();
    assert_eq!(told.told(early), Err(AccountRefusal::NoSuchGrant), "it is not revived");
}

#[test]
fn a_login_over_the_limit_ends_the_oldest_and_a_token_is_refused() {
    let mut told = Told::chosen();
    for id in 0..GRANTS_OF_A_KIND_MAX as u128 {
        told.log_in(id, OWNER).unwrap();
        told.give(1_000 + id, OWNER, Given::Token).unwrap();
    }
    let many = AccountRefusal::TooManyGrants { person: OWNER.into(), surface: "web" };
    assert_eq!(told.give(5_000, OWNER, Given::Token), Err(many));
    told.log_in(5_001, OWNER).unwrap();
    assert_eq!((told.standing(0), told.standing(5_001)), (None, Some(Standing::Decides)));
    assert_eq!(told.0.grants.len(), 2 * GRANTS_OF_A_KIND_MAX);
}

#[test]
fn a_terminal_is_remembered_for_a_while_and_for_its_person() {
    let mut told = Told::chosen();
    let (owner, known) = (person(OWNER), told.0.version);
    let unlock = || InstallationCommand::UnlockTerminal {
        person: owner.clone(),
        surface: "cli tty1".into(),
        known,
    };
    told.told(unlock()).unwrap();
    let given = |told: &Told, now| told.0.given_at(&owner, "cli tty1", Time(now));
    assert_eq!((given(&told, 1), given(&told, TERMINAL_MICROS)), (Some(Time(1)), Some(Time(1))));
    assert_eq!((given(&told, TERMINAL_MICROS + 1), given(&told, 0)), (None, None));
    assert_eq!(told.0.given_at(&person("bea"), "cli tty1", Time(1)), None);
    let (old, new) = (hash("owner's"), hash("new"));
    told.told(InstallationCommand::Change { person: owner.clone(), old, hash: new }).unwrap();
    assert_eq!(given(&told, 1), None, "the passphrase is another one");
    assert_eq!(told.told(unlock()), Err(AccountRefusal::Outdated));
}

#[test]
fn every_entry_is_chained_with_its_number_its_time_and_all_that_it_says() {
    let mut told = Told::chosen();
    told.add("bea", &[Role::Decide]).unwrap();
    told.log_in(1, OWNER).unwrap();
    let head = SessionHead { session: hash("s"), seq: Seq(4), head: hash("h") };
    let begin =
        InstallationCommand::Begin { settings: [("a".into(), hash("b"))].into(), key: hash("k") };
    told.told(begin.clone()).unwrap();
    let before = told.0.clone();
    told.told(begin).unwrap();
    assert_eq!(before, told.0, "nothing else was found");
    let after =
        |at, event: &InstallationEvent| before.clone().evolve(Time(at), event).unwrap().head;
    let taken = InstallationEvent::HeadTaken(head);
    let heads: BTreeSet<_> = [
        after(1, &taken),
        after(2, &taken),
        after(1, &InstallationEvent::HeadTaken(SessionHead { session: hash("t"), ..head })),
        after(1, &InstallationEvent::HeadTaken(SessionHead { seq: Seq(5), ..head })),
        after(1, &InstallationEvent::HeadTaken(SessionHead { head: hash("i"), ..head })),
        Installation::default().evolve(Time(1), &taken).unwrap().head,
        before.head,
    ]
    .into();
    assert_eq!(heads.len(), 7);
}

#[test]
fn what_was_given_allows_no_more_than_the_account_and_logins_end_with_the_passphrase() {
    let mut told = Told::chosen();
    let owner = person(OWNER);
    told.log_in(1, OWNER).unwrap();
    told.give(2, OWNER, Given::Token).unwrap();
    assert_eq!(told.standing(1), Some(Standing::Decides));
    let (old, new) = (hash("owner's"), hash("new"));
    told.told(InstallationCommand::Change { person: owner.clone(), old, hash: new }).unwrap();
    assert_eq!(told.standing(1), None, "a login");
    assert_eq!(told.standing(2), Some(Standing::Speaks), "a token");
    told.add("bea", &[]).unwrap();
    told.log_in(3, "bea").unwrap();
    assert_eq!(told.standing(3), Some(Standing::Speaks), "no more than the account");
    let seen = |name: &str| -> Vec<String> {
        let name = person(name);
        told.0.seen_by(&name).map(|(person, _)| person.0.clone()).collect()
    };
    assert_eq!((seen(OWNER), seen("bea")), (vec!["bea".into(), OWNER.into()], vec!["bea".into()]));
}

#[test]
fn what_was_approved_waits_when_a_passphrase_is_reset() {
    let hold = |world: &mut World| {
        let why = HoldReason::PassphraseReset;
        world.system(SystemCommand::Hold { by: ada(), why }).unwrap();
    };
    let mut world = ready().approved().turn_starts();
    hold(&mut world);
    let reason = PauseReason::PassphraseReset { approver: "ada".into() };
    let status = &world.plan().status;
    assert!(
        matches!(status, PlanStatus::Executing(_, Progress::Paused(why)) if *why == reason),
        "{status:?}"
    );
    assert!(world.session.turn.is_none());
    let mut world = ready();
    hold(&mut world);
    assert_eq!(world.plan().status, PlanStatus::Ready, "what waits goes on waiting");
}

#[test]
fn what_was_allowed_for_the_rest_of_a_plan_is_asked_for_again() {
    for why in [HoldReason::PassphraseReset, HoldReason::Imported] {
        let mut world = ready().shown();
        let grant = Some(Declared::default());
        let approving = Approving { grant, ..Approving::of(world.digest(), terms()) };
        world.person(PersonCommand::Decide(Decision::Approve(approving))).unwrap();
        let asks = world.turn_starts().answers("", vec![write("a")]).calls_start();
        let mut world = asks.permitted(Permit::UntilPlanEnds);
        assert_eq!(world.plan().grants.len(), 1);
        world.system(SystemCommand::Hold { by: ada(), why }).unwrap();
        assert_eq!(world.plan().grants, []);
    }
}

/// A world in which a passphrase lasts an hour for files, and a minute for everything else; and somebody who gave theirs so
/// long ago.
fn aged(world: World, given: Option<i64>) -> (World, Person) {
    let policy = Policy {
        age_micros_max: Some(3_600_000_000),
        risky_age_micros_max: Some(60_000_000),
        usual_spend_micros_max: Some(1_000_000),
        ..Policy::default()
    };
    let world = world.under(policy);
    // It is asked a millisecond later.
    let authenticated = given.map(|ago| world.now.plus_micros(1_000 - ago));
    (world, Person { authenticated, ..ada() })
}

#[test]
fn how_lately_a_passphrase_must_have_been_given_depends_on_what_can_come_of_it() {
    let lease = |tools: &[&str], hosts: &[&str], spend| {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (tools, hosts) = (set(tools), set(hosts));
        Some(Declared { tools, hosts, spend_micros_max: spend, ..Declared::default() })
    };
    let (usual, more) = (
        [None, lease(&["write_file"], &[], None), lease(&[], &[], Some(1_000_000))],
        [
            lease(&["run_command"], &[], None),
            lease(&[], &["example.org"], None),
            lease(&[], &[], Some(1_000_001)),
        ],
    );
    let minute = 60_000_000;
    let ages = [
        Some(0),
        Some(minute),
        Some(minute + 1),
        Some(60 * minute),
        Some(60 * minute + 1),
        Some(-2 * minute),
        None,
    ];
    let approves = |grant: &Option<Declared>, given| {
        let (mut world, person) = aged(ready().shown(), given);
        let mut terms = terms();
        terms.priced = true;
        terms.schemas.insert("run_command".into(), hash("run_command"));
        let approving = Approving { grant: grant.clone(), ..Approving::of(world.digest(), terms) };
        let approve = PersonCommand::Decide(Decision::Approve(approving));
        match world.ask(SessionCommand::Person(person, approve)) {
            Ok(_) => true,
            Err(Refusal::Plan(PlanRefusal::AskAgain { .. })) => false,
            Err(other) => panic!("{other}"),
        }
    };
    for grant in &usual {
        let approved = ages.map(|given| approves(grant, given));
        assert_eq!(approved, [true, true, true, true, false, false, false], "{grant:?}");
    }
    for grant in &more {
        let approved = ages.map(|given| approves(grant, given));
        assert_eq!(approved, [true, true, false, false, false, false, false], "{grant:?}");
    }
}

#[test]
fn what_becomes_known_everywhere_needs_a_passphrase_given_lately_from_everyone() {
    let minute = 60_000_000;
    let ages = [Some(0), Some(minute), Some(minute + 1), Some(-2 * minute), None];
    for standing in [Standing::Decides, Standing::Speaks] {
        let promotes = ages.map(|given| {
            let (mut world, person) = aged(a_session(), given);
            world.now = world.now.plus_micros(1_000);
            let person = Person { standing, ..person };
            let may = may_promote(&world.session, &person, world.now, &world.policy);
            may.map_err(|refusal| refusal.kind())
        });
        let no = Err("ask_again");
        assert_eq!(promotes, [Ok(()), Ok(()), no, no, no], "{standing:?}");
    }
}

#[test]
fn who_must_give_the_passphrase_again_may_repeat_the_same_command() {
    let refusal = Refusal::from(PlanRefusal::AskAgain { minutes: 15 });
    assert!(!refusal.is_final());
    assert_eq!(refusal.kind(), "ask_again");
}

proptest! {
    /// However commands follow each other: the owner is there with every role, a link belongs to one person, and a passphrase
    /// that was chosen is only ever replaced by who knew it, was invited, or reset it.
    /// Invariant: `an-owner`
    #[test]
    fn the_owner_stays_whatever_is_asked(steps in prop::collection::vec((0_u8..9, 0_u8..4, 0_u8..3), 0..60)) {
        let names = [OWNER, "ada", "bea", "c\u{202e}"];
        let mut told = Told::new();
        for (at, (kind, who, what)) in steps.into_iter().enumerate() {
            let (who, now) = (person(names[usize::from(who)]), Time(at as i64));
            let by = by(names[usize::from(what)]);
            let invitation = link(&at.to_string(), 30);
            let hash = hash(&format!("hash {at}"));
            let roles: BTreeSet<_> = [Role::ALL[usize::from(what)]].into();
            let command = match kind {
                0 => InstallationCommand::Add { person: who, roles, invitation, by },
                1 => InstallationCommand::Invite { person: who, invitation, by },
                2 => InstallationCommand::InviteOwner { invitation },
                3 => InstallationCommand::ChooseFirst { person: who, hash },
                4 => {
                    let secret = told.0.people.values().filter_map(|account| account.invitation).nth(what.into());
                    InstallationCommand::Accept { secret: secret.map_or(hash, |link| link.secret), hash, now }
                }
                5 => {
                    let old = told.0.account(&who).and_then(|account| account.passphrase);
                    InstallationCommand::Change { person: who, old: old.filter(|_| what > 0).unwrap_or(hash), hash }
                }
                6 => InstallationCommand::Reset { person: who, hash, now },
                7 => InstallationCommand::SetRoles { person: who, roles, by },
                _ => InstallationCommand::Remove { person: who, by },
            };
            let before = told.0.clone();
            if told.told(command.clone()).is_err() {
                prop_assert_eq!(&before, &told.0);
            }
            let owner = told.0.account(&person(OWNER)).unwrap();
            prop_assert_eq!(&owner.roles, &BTreeSet::from(Role::ALL));
            prop_assert!(told.0.people.keys().all(|person| named_well(person).is_ok()));
            let changed = before.people.iter().any(|(person, account)| {
                let now = told.0.account(person).map(|account| account.passphrase);
                account.passphrase.is_some() && now.is_some_and(|now| now != account.passphrase)
            });
            let may_change = match &command {
                InstallationCommand::Accept { secret, .. } => before.people.values().any(|account| {
                    account.invitation.is_some_and(|link| link.secret == *secret && now < link.until)
                }),
                InstallationCommand::Change { person, old, .. } => {
                    before.account(person).and_then(|account| account.passphrase) == Some(*old)
                }
                InstallationCommand::Reset { .. } => true,
                _ => false,
            };
            prop_assert!(!changed || may_change, "{:?}", command);
            let links: Vec<_> = told.0.people.values().filter_map(|account| account.invitation).collect();
            let secrets: BTreeSet<_> = links.iter().map(|link| link.secret).collect();
            prop_assert_eq!(links.len(), secrets.len(), "a link belongs to one person");
        }
    }
}

fn a_grant() -> Grant {
    let mut told = Told::chosen();
    told.log_in(1, OWNER).unwrap();
    told.0.grants[&grant_id(1)].clone()
}

#[test]
fn every_event_has_a_kind_of_its_own() {
    let events = [
        InstallationEvent::PersonAdded { person: person("a"), roles: [].into(), by: person("b") },
        InstallationEvent::PersonInvited {
            person: person("a"),
            invitation: link("l", 1),
            by: None,
        },
        InstallationEvent::PassphraseChosen { person: person("a"), hash: hash("h") },
        InstallationEvent::PassphraseChanged { person: person("a"), hash: hash("h") },
        InstallationEvent::PassphraseReset { person: person("a"), hash: hash("h"), at: Time(1) },
        InstallationEvent::RolesChanged { person: person("a"), roles: [].into(), by: person("b") },
        InstallationEvent::PersonRemoved { person: person("a"), by: person("b") },
        InstallationEvent::Granted { id: grant_id(1), grant: a_grant() },
        InstallationEvent::GrantRenewed { id: grant_id(1), standing: Standing::Speaks },
    ];
    let kinds: BTreeSet<_> = events.iter().map(InstallationEvent::kind).collect();
    assert_eq!(kinds.len(), events.len());
    for event in &events[1..] {
        let stray = Installation { people: [].into(), ..Installation::default() };
        assert!(stray.evolve(Time(1), event).is_err(), "{event:?} is about nobody");
    }
}
