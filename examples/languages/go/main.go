package main

import (
	"github.com/kumulus-io/kumulus/sdk/go/kumulus"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		cluster, err := kumulus.NewKwokCluster(ctx, "fleet", nil)
		if err != nil {
			return err
		}
		training, err := kumulus.NewKwokNodeGroup(ctx, "training", &kumulus.KwokNodeGroupArgs{
			Cluster:      cluster,
			Zones:        map[string]int{"use1": 4, "use2": 4},
			InstanceType: pulumi.StringRef("a3-highgpu-8g"),
			Labels:       pulumi.StringMap{"team": pulumi.String("research")},
			Topology:     &kumulus.GroupTopologySpecArgs{NodesPerRack: 2},
		})
		if err != nil {
			return err
		}
		_, err = kumulus.NewKwokNodeGroup(ctx, "general", &kumulus.KwokNodeGroupArgs{
			Cluster:  cluster,
			Zones:    map[string]int{"use1": 3},
			Capacity: map[string]interface{}{"cpu": "16", "memory": "64Gi", "pods": "110"},
			Taints:   []map[string]string{},
		})
		if err != nil {
			return err
		}
		ctx.Export("kubeconfig", cluster.Kubeconfig)
		ctx.Export("gpuNodes", training.Nodes)
		return nil
	})
}
