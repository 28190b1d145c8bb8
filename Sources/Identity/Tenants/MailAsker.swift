public import Base
public import Messages

/// Who asks for a mail. This decides which budgets of the mailbox the mail is charged to.
///
/// | asker | budgets of the mailbox |
/// |---|---|
/// | anybody who types the address | 5 an hour for each kind of mail |
/// | the account that has the address | 5 an hour |
/// | another account, which wants to have the address | 5 an hour for this account, 10 for all such accounts |
///
/// Of these 10, the last 5 are for accounts that have asked for none within the hour.
///
/// An account that asks for the address of another one causes mails that nobody sees: the address is taken, so they are
/// decoys. So does a password reset for an address without an account. Decoys must not use up the mails by which the
/// owner of the mailbox gets in (decision 0145).
public enum MailAsker: Sendable {
    case anybody(OobRequestType)
    case owner
    case stranger(uid: Text)
}
