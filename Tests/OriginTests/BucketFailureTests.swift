import BucketClient
import HTTP
import Testing
import Upstream

/// What a failure of the shared store is about.
@Suite struct BucketFailureTests {
    private func failure(_ status: UInt16, _ code: String? = nil) -> BucketFailure? {
        let body = code.map { "<Error><Code>\($0)</Code></Error>" } ?? ""
        return BucketFailure(HTTPStatus(rawValue: status), Array(body.utf8))
    }

    @Test func `a refusal that other credentials may change is told from others`() {
        #expect(failure(401)?.mayBeOfKeys == true)
        #expect(failure(403, "InvalidAccessKeyId")?.mayBeOfKeys == true)
        #expect(failure(400, "ExpiredToken")?.mayBeOfKeys == true)
        #expect(failure(400, "InvalidRequest")?.mayBeOfKeys == false)
        #expect(failure(404)?.mayBeOfKeys == false)
        #expect(failure(503, "SlowDown")?.mayBeOfKeys == false)
    }

    @Test func `a bucket that does not exist is no object that is missing`() throws {
        let lacking = try #require(failure(404, "NoSuchBucket"))
        #expect(lacking.isOfBucket && !lacking.isOfObject && !lacking.mayBeOfKeys)
        for code in [nil, "NoSuchKey"] {
            let missing = try #require(failure(404, code))
            #expect(!missing.isOfBucket && missing.isOfObject)
        }
    }

    @Test func `what concerns the whole store is told from what concerns one object`() throws {
        for (status, code) in [
            (401, nil), (403, "AccessDenied"), (400, "ExpiredToken"), (404, "NoSuchBucket"),
            (408, nil), (429, nil), (500, "InternalError"), (503, "SlowDown"), (507, nil),
        ] as [(UInt16, String?)] {
            let made = try #require(failure(status, code))
            #expect(made.isOfStore, "\(made)")
        }
        for (status, code) in [
            (400, "InvalidRequest"), (404, "NoSuchKey"), (404, "NoSuchUpload"), (413, nil),
            (501, "NotImplemented"),
        ] as [(UInt16, String?)] {
            let made = try #require(failure(status, code))
            #expect(!made.isOfStore, "\(made)")
        }
        #expect(BucketFailure.failed(UpstreamError(.connect, host: "store.test")).isOfStore)
    }

    @Test(arguments: [
        ("InternalError", true), ("SlowDown", true), ("ExpiredToken", true),
        ("NoSuchBucket", true), ("InvalidPart", false), ("EntityTooSmall", false),
    ])
    func `an error in an answer of status 200 is told by its code`(code: String, isOfStore: Bool) {
        #expect(BucketFailure.refused(status: 200, code: code).isOfStore == isOfStore)
    }
}
