import HTTP
import Testing

/// The `Proxy-Status` field of responses to failures.
struct ProxyStatusTests {
    @Test(arguments: [
        (ProxyStatus(proxy: "sluice"), "sluice"),
        (ProxyStatus(proxy: "sluice", error: .dnsError), "sluice; error=dns_error"),
        (
            ProxyStatus(proxy: "sluice", receivedStatus: .badGateway),
            "sluice; received-status=502"
        ),
        (
            ProxyStatus(proxy: "sluice", error: .httpResponseTimeout, receivedStatus: .ok),
            "sluice; error=http_response_timeout; received-status=200"
        ),
    ])
    func `the value of Proxy-Status is a list member with parameters`(
        _ status: ProxyStatus, _ text: String
    ) {
        #expect(status.serialised == text)
    }

    @Test func `our member is appended behind those of proxies nearer to the origin`() {
        var fields = Fields()
        fields.append("Proxy-Status", "other; error=dns_timeout")
        ProxyStatus(proxy: "sluice", error: .connectionRefused).append(to: &fields)
        #expect(fields.listMembers("Proxy-Status").last == "sluice; error=connection_refused")
    }

    @Test func `error types have their registered names`() {
        for type in ProxyStatus.ErrorType.allCases {
            #expect(type.rawValue.utf8.allSatisfy { $0 == 0x5F || (0x61...0x7A).contains($0) })
        }
    }
}
