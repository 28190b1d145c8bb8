public import Base

/// Who asks for a mail. This decides which budgets of the mailbox the mail is charged to.
///
/// | asker | budgets of the mailbox |
/// |---|---|
/// | anybody who types the address | 5 an hour |
/// | the account that has the address | 5 an hour |
/// | another account, which wants to have the address | 5 an hour for this account, 10 for all such accounts |
///
/// An account that asks for the address of another one causes mails that nobody sees: the address is taken, so they are
/// decoys. They must not use up the mails by which the owner of the mailbox gets in.
public enum MailAsker: Sendable {
    case anybody
    case owner
    case stranger(uid: Text)
}
