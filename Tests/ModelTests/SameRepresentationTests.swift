import CachePolicy
import HLS
import HTTP
import Logging
import Model
import Posix
import Store
import Testing

/// Which responses belong to a stored body.
@Suite struct SameRepresentationTests {
    private func head(_ coding: String?) -> StoredHead {
        var fields: Fields = ["ETag": "\"one\""]
        if let coding { fields.append(.contentEncoding, coding) }
        return StoredHead(
            status: .ok, fields: fields, requestTime: .now(), responseTime: .now(),
            finalURL: "http://h/a.ts")
    }

    @Test(
        arguments: [
            ("gzip", "GZIP", true), ("gzip", nil, false), (nil, "br", false), (nil, nil, true),
            ("gzip", "br", false), (nil, "aws-chunked", true), ("identity", nil, true),
        ] as [(String?, String?, Bool)])
    func `bodies of two content codings are not the same, even with one strong entity tag`(
        known: String?, new: String?, areSame: Bool
    ) throws {
        let folder = try makeTemporaryFolder("same-representation")
        defer { removeTree(folder) }
        let store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0),
            log: Logger(label: "same-representation") { _ in SwiftLogNoOpLogHandler() })
        defer { store.close() }
        let object = try store.create(
            ObjectDescription(
                key: ObjectKey(sha256Of: "a"), url: "http://h/a.ts",
                role: ResourceRole.media.letter, head: head(known).encoded, total: nil,
                created: .now(), isStorable: true))
        #expect(ObjectFacts.isSame(object, as: head(new), total: nil) == areSame)
    }
}
