import Model
import Testing

@testable import Serving

struct SettingsListTests {
    @Test(arguments: [
        ("token", "acc3ss", "***"), ("slots", "7", "7"),
        ("origin-proxy", "*.a=http://u:p@h:1", "*.a=http://***@h:1"),
        ("origin-proxy", "a=http://u:p@w@h:1/", "a=http://***@h:1/"),
        ("mount", "/a/=https://cdn/x?key=1", "/a/=https://cdn/x?***"),
        ("mount", "/a/=https://u@cdn/@x/", "/a/=https://***@cdn/@x/"),
        ("origin-policy", "a?.example=rfc", "a?.example=rfc"), ("bind", "", ""),
        ("x", "http://a:b@c,http://d:e@f", "http://***@c,http://***@f"), ("x", "://", "://"),
        ("origin-proxy", "a=http://u:p,w@h", "a=http://***@h"),
    ])
    func `secrets of a value are not shown`(_ name: String, _ value: String, _ shown: String) {
        #expect(SettingsList.withoutSecrets(name, value) == shown)
    }

    @Test func `a configuration that is read again replaces only what follows it`() {
        let list = SettingsList()
        list.replace(["slots": ["7"], "policy": ["rfc"], "mount": ["/a/=http://b/"]])
        list.replace(["slots": ["9"], "mount": ["/c/=http://d/"]], of: ["policy", "mount"])
        let text = list.json.encoded
        #expect(
            text
                == #"{"settings":[{"name":"mount","values":["/c/=http://d/"]},{"name":"slots","values":["7"]}]}"#
        )
    }
}
