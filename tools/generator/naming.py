"""How names in .proto files become names in Swift and in protobuf-c's C.

Swift types: postern.* and nested types keep their name; the packages in TYPE_PREFIX get a prefix, because their names
are too general to stand alone (google.rpc.Status is GoogleStatus).
"""

import re

TYPE_PREFIX = {
    "google.protobuf": "Protobuf",
    "google.rpc": "Google",
    "grpc.health.v1": "GRPC",
    "grpc.reflection.v1": "GRPC",
    "postern.v1": "",
    "postern.wire.v1": "",
    "postern.store.v1": "",
}

# Words that Swift's API guidelines write in one case: tenant_id is tenantID, id_token is idToken.
ACRONYMS = {
    "id": "ID", "ids": "IDs", "uid": "UID", "uids": "UIDs", "url": "URL", "urls": "URLs", "uri": "URI",
    "ip": "IP", "tls": "TLS", "jwt": "JWT", "jwks": "JWKS", "json": "JSON", "oob": "OOB", "sms": "SMS",
    "mfa": "MFA", "totp": "TOTP", "oidc": "OIDC", "saml": "SAML", "api": "API", "http": "HTTP", "utf8": "UTF8",
}

SWIFT_KEYWORDS = set(
    "associatedtype class deinit enum extension fileprivate func import init inout internal let open operator private "
    "precedencegroup protocol public rethrows static struct subscript typealias var break case catch continue default "
    "defer do else fallthrough for guard if in repeat return throw switch where while Any as await false is nil self "
    "Self super throws true try".split())

# protoc-c appends an underscore to a field that is a keyword of C++ (c_helpers.cc, kKeywordList).
C_KEYWORDS = set(
    "and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast continue default delete "
    "do double dynamic_cast else enum explicit extern false float for friend goto if inline int long mutable namespace "
    "new not not_eq operator or or_eq private protected public register reinterpret_cast return short signed sizeof "
    "static static_cast struct switch template this throw true try typedef typeid typename union unsigned using "
    "virtual void volatile wchar_t while xor xor_eq".split())


def escaped(name):
    return f"`{name}`" if name in SWIFT_KEYWORDS else name


def lower_camel(snake):
    """display_name → displayName, photo_url → photoURL."""
    first, *rest = [word for word in snake.lower().split("_") if word]
    return first + "".join(ACRONYMS.get(word, word[:1].upper() + word[1:]) for word in rest)


def upper_camel(snake):
    """message_request → MessageRequest."""
    return "".join(word[:1].upper() + word[1:] for word in snake.split("_") if word)


def lower_first(name):
    return name[:1].lower() + name[1:]


def upper_snake(camel):
    """RefreshMode → REFRESH_MODE, the prefix of an enum's values."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", camel).upper()


def enum_case(enum_name, value_name):
    """REFRESH_MODE_REUSE of RefreshMode → reuse."""
    prefix = upper_snake(enum_name) + "_"
    bare = value_name[len(prefix):] if value_name.startswith(prefix) else value_name
    name = lower_camel(bare)
    return "_" + name if name[0].isdigit() else name


def swift_type_path(package, path):
    """The Swift name of the type at `path` (outermost first) in `package`."""
    return ".".join([TYPE_PREFIX[package] + path[0], *path[1:]])


def c_camel(name):
    """protoc-c's ToCamel."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def c_type(full_name):
    """postern.v1.User → Postern__V1__User (protoc-c's FullNameToC)."""
    return "__".join(c_camel(part) for part in full_name.split("."))


def c_lower(full_name):
    """postern.v1.TokenPair → postern__v1__token_pair (protoc-c's FullNameToLower)."""
    return "__".join(_camel_to_lower(part) for part in full_name.split("."))


def _camel_to_lower(name):
    result, was_upper = "", True
    for character in name:
        is_upper = "A" <= character <= "Z"
        if is_upper and not was_upper:
            result += "_"
        result += character.lower()
        was_upper = is_upper
    return result


def c_field(name):
    lower = name.lower()
    return lower + "_" if lower in C_KEYWORDS else lower
