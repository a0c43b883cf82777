import HTTP
@testable import Library
import Model
import Posix
import Routing
import Synchronization
import Testing
import URISyntax

/// Changes to a title of which nothing is kept here.
@Suite struct AbsentTitleTests {
    /// What was asked for, and the purges that parents are asked past.
    private struct Outcome {
        let purge: AdministrationAnswer
        let unpin: AdministrationAnswer
        let purged: [PurgeOrder.Subject]
    }

    /// Purges and unpins a title of an empty store.
    private func change(
        _ title: String, others: StoreAdministration.Others, isRepeated: Bool = false
    ) throws -> Outcome {
        let purged = Mutex<[PurgeOrder.Subject]>([])
        let stage = try TitleStage()
        let administration = stage.administration(
            others: others,
            willPurge: { orders in
                purged.withLock { $0 += orders.map(\.subject) }
                return .done
            })
        let query = "title=\(PercentCoding.queryComponent(title))"
        let unpin = administration.answer(.post, "/api/unpin?\(query)")
        let purge =
            isRepeated
            ? administration.purge([(query: query, given: .now())])
            : administration.answer(.post, "/api/purge?\(query)")
        administration.stop()
        return Outcome(purge: purge, unpin: unpin, purged: purged.withLock { $0 })
    }

    private func note(_ answer: AdministrationAnswer) -> String? {
        guard case .value(_, .object(let members)) = answer,
            case .text(let text)? = members.first(where: { $0.name == "note" })?.value
        else { return nil }
        return text
    }

    private func isUnknown(_ answer: AdministrationAnswer) -> Bool {
        if case .failure(.notFound, _) = answer { true } else { false }
    }

    private static func number(of url: String) throws -> UInt64 {
        Session(startingAt: try AbsoluteURL(url)).id.number
    }

    @Test(arguments: ["http://h/l.m3u8", "0123456789ab"])
    func `a title that is not kept is purged and unpinned where other caches have it`(
        _ title: String
    ) throws {
        let number = try SessionID(text: title)?.number ?? Self.number(of: title)
        let nodes = try change(title, others: .init(hasNodes: true))
        #expect(note(nodes.purge)?.contains("other nodes are told") == true)
        #expect(note(nodes.unpin)?.contains("other nodes are told") == true)
        #expect(nodes.purged == [.titles([number])])
        let parents = try change(title, others: .init(hasParents: true))
        #expect(note(parents.purge)?.contains("parents are asked") == true)
        #expect(parents.purged == [.titles([number])])
        // Parents have no pins of ours.
        #expect(isUnknown(parents.unpin))
        let alone = try change(title, others: .init())
        #expect(isUnknown(alone.purge) && isUnknown(alone.unpin))
        #expect(alone.purged.isEmpty)
    }

    @Test func `a purge of another node has parents asked past a title that is not kept here`()
        throws
    {
        let url = "http://h/l.m3u8"
        let outcome = try change(
            url, others: .init(hasNodes: true, hasParents: true), isRepeated: true)
        #expect(outcome.purged == [.titles([try Self.number(of: url)])])
    }

    @Test func `a text that names no title is refused, whoever else has titles`() throws {
        let outcome = try change(
            "nonsense", others: .init(hasNodes: true, hasParents: true))
        for answer in [outcome.purge, outcome.unpin] {
            guard case .failure(.badRequest, _) = answer else {
                Issue.record("\(answer)")
                continue
            }
        }
        #expect(outcome.purged.isEmpty)
    }
}
