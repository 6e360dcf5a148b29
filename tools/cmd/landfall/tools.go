package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"landfall.build/tools/logview"
)

// toolCommands are the commands that are no part of the running queue.
func toolCommands() []*cobra.Command {
	return []*cobra.Command{logview.Command(brokersOf)}
}

// brokersOf are the brokers that a configuration names.
func brokersOf(file string) ([]string, error) {
	config, err := loadConfiguration(file)
	if err != nil {
		return nil, fmt.Errorf("%w (or give --brokers)", err)
	}
	if len(config.Broker.Brokers) == 0 {
		return nil, fmt.Errorf("%s names no brokers; give --brokers (landfall up says at its start where its log is)", file)
	}
	return config.Broker.Brokers, nil
}
