"""The words that replace names: plain English, easy to distinguish and to pronounce."""

_ADJECTIVES = """
    amber ample arctic autumn azure basic beige bold brave brief bright brisk bronze calm candid civic clear
    clever coastal cobalt copper coral cosmic crisp cubic daily deep dry dusty eager early easy fair fast fine
    firm fleet fond fresh gentle glad golden grand green happy hazel hidden humble icy ivory jolly keen kind
    late lemon level light lilac lively lofty loyal lucky lunar mellow merry mild misty modest mossy navy neat
    nimble noble north olive opal open orange pale pearl plain polar proud pure quick quiet rapid rare ready
    regal robust rosy round royal ruby rustic sandy scarlet serene sharp silent silver simple sleek slow smooth
    snowy solar solid spare spring stable steady stone sunny swift tall teal tidy tiny topaz vast velvet violet
    vivid warm west white wide wild windy wise young
"""
ADJECTIVES = tuple(_ADJECTIVES.split())
_NOUNS = """
    acorn alder anchor apple aspen badger banjo barley basin beacon beaver birch bison bramble breeze bridge
    brook butte cactus canoe canyon cedar cello cherry cliff cloud clover comet condor coral cove crane creek
    crow cypress daisy dale delta dingo dove dune eagle elm ember falcon fern ferry fjord flint forest fox
    garnet gecko geyser glacier glade grove gull harbor hare harp hawk hazel heath heron hill holly ibex iris
    island ivy jasper jay juniper kelp kestrel kiwi lagoon lake lantern larch lark laurel lily linden lion lotus
    lynx magpie maple marsh meadow mesa mole moose moss newt oak oasis olive orchid oriole osprey otter owl
    panda peach pebble pelican pine plover plum pond poppy prairie puffin quail quartz rabbit raven reed reef
    ridge river robin rose sage salmon seal shore sparrow spruce stone stork stream sumac summit swan thistle
    thrush tiger topaz trout tulip turtle valley violet walnut willow wolf wren yak zebra
"""
NOUNS = tuple(_NOUNS.split())
