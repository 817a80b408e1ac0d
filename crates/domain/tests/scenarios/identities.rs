//! Names of conversations: new ones, older ones, and their text form.

use planwright_domain::{
    digest::Digest,
    identity::{ChannelType, ConversationKey, IdentityRefusal, SessionIdentity, SessionKey},
};

use crate::given::owner_id;

#[test]
fn a_new_key_has_eight_to_sixty_four_plain_characters() {
    for good in ["abcdefgh", "A-b_C-d_", &"x".repeat(64)] {
        assert!(ConversationKey::new(good).is_ok(), "{good}");
    }
    for bad in
        ["short", "with space", "semi:colon", "pathy/../..", &"x".repeat(65), "ümlautisch", ""]
    {
        assert_eq!(ConversationKey::new(bad), Err(IdentityRefusal::NewKey(bad.into())));
    }
}

#[test]
fn an_older_key_is_readable_and_may_not_be_new() {
    let key = ConversationKey::legacy("42").unwrap();
    assert!(!key.may_be_new());
    assert_eq!(ConversationKey::legacy(""), Err(IdentityRefusal::LegacyKey));
    assert_eq!(ConversationKey::legacy(&"x".repeat(257)), Err(IdentityRefusal::LegacyKey));
}

#[test]
fn the_text_form_is_escaped_and_safe_as_a_path() {
    let identity =
        SessionIdentity::new(ChannelType::Telegram, ConversationKey::legacy("../a:b%").unwrap());
    assert_eq!(identity.to_string(), "telegram:%2E%2E%2Fa%3Ab%25");
    assert_eq!(identity.path_segment(), "telegram.%2=e%2=e%2=fa%3=ab%25");
    assert_eq!(SessionIdentity::parse(&identity.to_string()), Ok(identity));
}

#[test]
fn a_text_that_is_not_the_one_form_is_refused() {
    for text in [
        "",
        "cli",
        "fax:talk-0001",
        "cli:",
        "cli:a b",
        "cli:%61bc",
        "cli:%2f",
        "cli:%",
        "CLI:talk-0001",
        "cli:%FF",
    ] {
        assert!(SessionIdentity::parse(text).is_err(), "{text}");
    }
}

/// Invariant: `session-isolation`.
#[test]
fn an_owner_names_their_own_session_by_its_identity_and_another_owners_by_its_whole_key() {
    let (ada, bea) = (owner_id("ada"), owner_id("bea"));
    let theirs = SessionKey::named("web:talk-0001", bea).unwrap();
    assert_eq!(theirs.name_for(bea), "web:talk-0001");
    assert_eq!(theirs.name_for(ada), theirs.to_string());
    assert_ne!(
        SessionKey::named("web:talk-0001", ada).unwrap(),
        theirs,
        "the same key, two owners"
    );
    for reader in [ada, bea] {
        assert_eq!(SessionKey::named(&theirs.name_for(reader), reader), Ok(theirs.clone()));
    }
    assert_eq!(SessionKey::parse(&theirs.to_string()), Ok(theirs.clone()));
    assert!(theirs.path_segment().ends_with(&theirs.identity.path_segment()));
    for text in [
        "web:talk-0001".to_owned(),
        theirs.to_string().to_uppercase(),
        format!("{}.web:talk-0001", bea),
        format!(".{}", theirs.identity),
        format!("{theirs}."),
    ] {
        assert!(SessionKey::parse(&text).is_err(), "{text}");
    }
}

#[test]
fn a_digest_has_one_text_form() {
    let digest = Digest::of(b"x");
    assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
    assert_eq!(Digest::parse(&digest.to_string()[1..]), None);
    assert_eq!(Digest::parse(&"zz".repeat(32)), None);
    assert_eq!(digest.short().len(), 8);
}
