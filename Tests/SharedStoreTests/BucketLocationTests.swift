import SharedStore
import Testing
import URISyntax

struct BucketLocationTests {
    @Test func `a location names bucket, prefix, endpoint and region`() throws {
        let location = try BucketLocation(
            "s3://films/tier/a?endpoint=http://127.0.0.1:8080&region=eu-west-1")
        #expect(location.bucket == "films" && location.prefix == "tier/a/")
        #expect(location.region == "eu-west-1" && location.host == "127.0.0.1")
        #expect(location.url(of: "v1/x")?.text == "http://127.0.0.1:8080/films/tier/a/v1/x")
        #expect(location.url(of: nil)?.text == "http://127.0.0.1:8080/films")
    }

    @Test func `without an endpoint it is that of AWS for the region`() throws {
        let location = try BucketLocation("s3://films?region=eu-west-1&style=host")
        #expect(
            location.url(of: "v1/x")?.text == "https://films.s3.eu-west-1.amazonaws.com/v1/x")
        #expect(location.host == "films.s3.eu-west-1.amazonaws.com")
    }

    @Test func `a query is sorted and encoded as it is signed`() throws {
        let location = try BucketLocation("s3://films?endpoint=http://a.example")
        let url = location.url(
            of: nil, query: [("prefix", "a/b c"), ("list-type", "2"), ("u", "")])
        #expect(url?.text == "http://a.example/films?list-type=2&prefix=a%2Fb%20c&u=")
    }

    @Test(arguments: [
        "", "films", "s3://", "s3://ab", "s3://Films", "s3://films/a//b", "s3://films/../x",
        "s3://films/a b", "s3://films?endpoint=ftp://x", "s3://films?endpoint=http://u:p@x",
        "s3://films?endpoint=http://x/path", "s3://films?region=", "s3://films?region=a/b",
        "s3://films?style=dns", "s3://films?key=secret", "s3://-films", "http://films/x",
        "s3://films?endpoint=http://x?y=1",
    ])
    func `anything else is rejected, and the message has no password`(_ text: String) {
        #expect {
            _ = try BucketLocation(text)
        } throws: { error in
            !"\(error)".contains("u:p") && !"\(error)".contains("secret")
        }
    }
}

struct AccessKeysTests {
    private let file = """
        # shared
        [default]
        aws_access_key_id = test:tester
        aws_secret_access_key=a=b/c
        [other]
          aws_access_key_id=ID2
          aws_secret_access_key = S2
          aws_session_token = T2
        [half]
        aws_access_key_id = X
        """

    @Test func `variables come before the file`() throws {
        let values = [
            "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_SESSION_TOKEN": "token",
        ]
        let keys = try AccessKeys.find(variable: { values[$0] }, read: { _ in file })
        #expect(keys == AccessKeys(id: "id", secret: "secret", token: "token"))
    }

    @Test func `the file is that of the user, and the profile the default one`() throws {
        let keys = try AccessKeys.find(
            variable: { ["HOME": "/home/x"][$0] },
            read: { $0 == "/home/x/.aws/credentials" ? file : nil })
        #expect(keys == AccessKeys(id: "test:tester", secret: "a=b/c"))
    }

    @Test func `variables name another file and another profile`() throws {
        let values = ["AWS_SHARED_CREDENTIALS_FILE": "/k", "AWS_PROFILE": "other"]
        let keys = try AccessKeys.find(
            variable: { values[$0] }, read: { $0 == "/k" ? file : nil })
        #expect(keys == AccessKeys(id: "ID2", secret: "S2", token: "T2"))
    }

    @Test(arguments: [
        [:], ["AWS_ACCESS_KEY_ID": "id"], ["HOME": "/h", "AWS_PROFILE": "half"],
        ["HOME": "/h", "AWS_PROFILE": "none"],
        ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "se cret"],
        ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "a\r\nX: y"],
    ])
    func `missing and malformed credentials are named without their values`(
        _ values: [String: String]
    ) {
        #expect {
            _ = try AccessKeys.find(
                variable: { values[$0] }, read: { _ in values["HOME"] == nil ? nil : file })
        } throws: { error in
            !"\(error)".contains("se cret") && !"\(error)".contains("X: y")
        }
    }

    @Test func `no description shows a secret`() {
        let keys = AccessKeys(id: "KEYID", secret: "SECRET", token: "TOKEN")
        for text in ["\(keys)", String(reflecting: keys), "\([keys])"] {
            #expect(!text.contains("SECRET") && !text.contains("KEYID") && !text.contains("TOKEN"))
        }
    }
}
