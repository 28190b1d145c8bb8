import Base
import Testing

@testable import Reactor

/// A place is given back once, whatever becomes of its work.
@Suite struct WorkPlaceTests {
    private let givenBack = Counter()

    private func makePlace() -> WorkPlace {
        let givenBack = givenBack
        return WorkPlace { givenBack.add() }
    }

    @Test func `Work that runs twice gives its place back once`() {
        let place = makePlace()
        let begun = [place.begin(), place.begin()]
        #expect(begun == [true, true])
        place.end()
        #expect(givenBack.value == 1)
        place.leave()
        place.end()
        #expect(givenBack.value == 1 && place.hasBegun)
    }

    @Test func `Work does not begin again when its caller has left`() {
        let place = makePlace()
        let first = place.begin()
        place.leave()
        let second = place.begin()
        #expect(first && !second && place.hasBegun && givenBack.value == 0)
        place.end()
        #expect(givenBack.value == 1)
    }

    @Test func `A caller that leaves before its work begins gives the place back`() {
        let place = makePlace()
        place.leave()
        let begun = place.begin()
        #expect(!begun && !place.hasBegun && givenBack.value == 1)
    }
}
