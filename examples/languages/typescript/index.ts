import * as kumulus from "@kumulus/kumulus";

const cluster = new kumulus.KwokCluster("fleet");
const training = new kumulus.KwokNodeGroup("training", {
    cluster: cluster,
    zones: { use1: 4, use2: 4 },
    instanceType: "a3-highgpu-8g",
    labels: { team: "research" },
    topology: { nodesPerRack: 2 },
});
const general = new kumulus.KwokNodeGroup("general", {
    cluster: cluster,
    zones: { use1: 3 },
    capacity: { cpu: "16", memory: "64Gi", pods: "110" },
    taints: [],
});
export const kubeconfig = cluster.kubeconfig;
export const gpuNodes = training.nodes;
