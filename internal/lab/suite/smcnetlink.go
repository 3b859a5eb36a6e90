package suite

import (
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The two families of generic netlink that SMC has, and of their commands and
// attributes those that are used here (include/uapi/linux/smc.h).
const (
	smcNetworks, smcGeneral = "SMC_PNETID", "SMC_GEN_NETLINK"

	smcAddNetwork                                                      = 2
	smcNetworkName, smcNetworkNetdev, smcNetworkDevice, smcNetworkPort = 1, 2, 3, 4

	smcAddEnterprise, smcEnterpriseEntry = 10, 1
	// smcEnterpriseLength is that of an enterprise's identity, padded by blanks.
	smcEnterpriseLength = 32
)

// smcEnterprise lets both ends of a connection be of one enterprise, without which
// there is no version 2 of the protocol, the one over RoCE v2.
const smcEnterprise = "LAB"

// configureSMC says to SMC which RDMA device is on which network: it does not find
// that out of soft-RoCE before Linux 6.13. Each end has a network of its own, as
// else either device would do for both, whose addresses are of one subnet.
func configureSMC() (err error) {
	c, err := netlink.Dial(unix.NETLINK_GENERIC, nil)
	if err != nil {
		return fmt.Errorf("generic netlink: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, end := range [][2]string{{clientNetdev, clientDevice}, {serverNetdev, serverDevice}} {
		request := netlink.NewAttributeEncoder()
		request.String(smcNetworkName, end[0])
		request.String(smcNetworkNetdev, end[0])
		request.String(smcNetworkDevice, end[1])
		request.Uint8(smcNetworkPort, 1)
		if err := tellFamily(c, smcNetworks, smcAddNetwork, request); err != nil {
			return fmt.Errorf("put %s and %s on one network: %w", end[0], end[1], err)
		}
	}
	request := netlink.NewAttributeEncoder()
	request.String(smcEnterpriseEntry, fmt.Sprintf("%-*s", smcEnterpriseLength, smcEnterprise))
	if err := tellFamily(c, smcGeneral, smcAddEnterprise, request); err != nil {
		return fmt.Errorf("add the enterprise %s: %w", smcEnterprise, err)
	}
	return nil
}

// tellFamily sends a command to a family of generic netlink.
func tellFamily(c *netlink.Conn, family string, command uint8, attributes *netlink.AttributeEncoder) error {
	lookup := netlink.NewAttributeEncoder()
	lookup.String(unix.CTRL_ATTR_FAMILY_NAME, family)
	answers, err := executeGeneric(c, unix.GENL_ID_CTRL, 0, unix.CTRL_CMD_GETFAMILY, lookup)
	if err != nil {
		return fmt.Errorf("look up the family %s: %w", family, err)
	}
	if len(answers) == 0 || len(answers[0].Data) < unix.GENL_HDRLEN {
		return fmt.Errorf("look up the family %s: no answer", family)
	}
	found, err := netlink.NewAttributeDecoder(answers[0].Data[unix.GENL_HDRLEN:])
	if err != nil {
		return err
	}
	var number uint16
	for found.Next() {
		if found.Type() == unix.CTRL_ATTR_FAMILY_ID {
			number = found.Uint16()
		}
	}
	if err := found.Err(); err != nil {
		return err
	}
	_, err = executeGeneric(c, number, netlink.Acknowledge, command, attributes)
	return err
}

// executeGeneric sends a request of version 1 and waits for one answer: what was
// asked for, or an acknowledgement where the flags want one.
func executeGeneric(c *netlink.Conn, family uint16, flags netlink.HeaderFlags, command uint8, attributes *netlink.AttributeEncoder) ([]netlink.Message, error) {
	data, err := attributes.Encode()
	if err != nil {
		return nil, err
	}
	return c.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(family), Flags: netlink.Request | flags},
		Data:   append([]byte{command, 1, 0, 0}, data...),
	})
}
