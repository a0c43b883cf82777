import HLS
import Testing
@testable import TimeShifting
import URISyntax

/// How long a recording says that its origin forbids to store something.
@Suite struct ForbiddenPiecesTests {
    private var forbidden = ForbiddenPieces()

    private func piece(_ role: ResourceRole, _ number: Int) throws -> TimeShiftFetches.Piece {
        TimeShiftFetches.Piece(
            url: try AbsoluteURL("http://h/\(number)"), role: role, range: nil, mark: 0,
            number: number)
    }

    private mutating func forbid(_ role: ResourceRole, _ number: Int, of list: Int = 0) throws {
        try forbidden.noteForbidden(
            piece(role, number), of: list, newest: max(number, 12), "\(role) of \(list)")
    }

    private mutating func store(_ role: ResourceRole, _ number: Int, of list: Int = 0) throws {
        try forbidden.noteStored(piece(role, number), of: list)
    }

    @Test mutating func `a later piece of the same kind ends it, and no earlier one`() throws {
        try forbid(.segment, 12)
        try store(.segment, 11)
        try store(.initialization, 12)
        #expect(forbidden.message == "segment of 0")
        try store(.segment, 13)
        #expect(forbidden.message == nil)
    }

    @Test mutating func `segments that no longer need a key end it`() throws {
        try forbid(.key, 10)
        // These were requested before the key failed.
        for number in 10...16 { try store(.segment, number) }
        #expect(forbidden.message == "key of 0")
        try store(.segment, 17)
        #expect(forbidden.message == nil)
    }

    @Test mutating func `a key that each segment requests in vain stays forbidden`() throws {
        for number in 12...40 {
            try forbid(.key, number)
            try store(.segment, number)
            #expect(forbidden.message == "key of 0")
        }
    }

    @Test mutating func `what another list stores changes nothing`() throws {
        try forbid(.segment, 12, of: 1)
        try forbid(.segment, 12)
        try store(.segment, 13)
        #expect(forbidden.message == "segment of 1")
        try store(.segment, 13, of: 1)
        #expect(forbidden.message == nil)
    }
}
