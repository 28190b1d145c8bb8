public import Base
public import JSON

extension JSONValue {
    /// The object with one member changed, added, or (nil) removed.
    public func with(_ name: Text, _ value: JSONValue?) -> JSONValue {
        var members = object ?? []
        let index = members.firstIndex { $0.name == name }
        switch (index, value) {
        case (let index?, let value?): members[index].value = value
        case (let index?, nil): members.remove(at: index)
        case (nil, let value?): members.append(Member(name, value))
        case (nil, nil): break
        }
        return .object(members)
    }
}
