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
        ("mount-header", "/a:b/=X-Key: a=b:c", "/a:b/=X-Key: ***"),
        ("mount-header", "/a/=X-Key: ***", "/a/=X-Key: ***"), ("mount-header", "a=b", "***"),
        ("origin-policy", "a?.example=rfc", "a?.example=rfc"), ("bind", "", ""),
        ("x", "http://a:b@c,http://d:e@f", "http://***@c,http://***@f"), ("x", "://", "://"),
        ("origin-proxy", "a=http://u:p,w@h", "a=http://***@h"),
    ])
    func `the secrets in a value are not shown`(_ name: String, _ value: String, _ shown: String) {
        #expect(SettingsList.withoutSecrets(name, value) == shown)
    }

    @Test func `a reloaded configuration replaces only settings that can be reloaded`() {
        let list = SettingsList()
        func setting(_ name: String, _ value: String, isReloaded: Bool) -> Setting {
            Setting(name: name, values: [value], source: "file", isReloaded: isReloaded)
        }
        list.replace([
            setting("slots", "7", isReloaded: false), setting("mount", "/a/", isReloaded: true),
        ])
        list.replace(
            [setting("slots", "9", isReloaded: false), setting("mount", "/c/", isReloaded: true)],
            isReload: true)
        #expect(
            list.json.encoded == #"{"settings":["#
                + #"{"name":"mount","values":["/c/"],"source":"file","reload":true},"#
                + #"{"name":"slots","values":["7"],"source":"file","reload":false}]}"#)
    }
}
