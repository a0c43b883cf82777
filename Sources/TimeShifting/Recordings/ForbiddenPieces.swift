// What the origin of a recording forbids to store, for as long as it does. Pure.
import HLS
import Numbers

/// The pieces of a recording's lists that may not be stored.
///
/// A piece that is forbidden is not tried again, but each later segment requests the keys and the
/// initialization section that it lacks anew. A kind of piece is forbidden until a later one of it
/// is stored, or until segments are stored that would have requested it again.
struct ForbiddenPieces {
    private struct Known {
        let list: Int
        let role: ResourceRole
        let message: String
        /// The number of the latest piece that was forbidden.
        var number: Int
        /// The newest segment that the list had then.
        var newest: Int
    }

    /// The segments by which the store may be ahead of the failure of a key that they need: those
    /// of one list that are fetched in parallel.
    private static let slack = 4

    /// The kinds that are forbidden, in the order in which they were found to be.
    private var all: [Known] = []

    /// Why something cannot be recorded; nil if nothing is forbidden.
    var message: String? { all.first?.message }

    /// Notes that the origin forbids to store a piece.
    ///
    /// - Parameters:
    ///   - piece: the piece.
    ///   - list: the index of its list.
    ///   - newest: the number of the newest segment of the list.
    ///   - message: what the user is told.
    mutating func noteForbidden(
        _ piece: TimeShiftFetches.Piece, of list: Int, newest: Int, _ message: String
    ) {
        let index = all.firstIndex { $0.list == list && $0.role == piece.role }
        guard let index else {
            return all.append(
                Known(
                    list: list, role: piece.role, message: message, number: piece.number,
                    newest: newest))
        }
        all[index].number = max(all[index].number, piece.number)
        all[index].newest = max(all[index].newest, newest)
    }

    /// Notes that a piece of a list is stored.
    mutating func noteStored(_ piece: TimeShiftFetches.Piece, of list: Int) {
        all.removeAll { known in
            guard known.list == list else { return false }
            if known.role == piece.role { return piece.number >= known.number }
            return piece.role == .segment
                && piece.number > known.newest.addingSaturated(Self.slack)
        }
    }
}
