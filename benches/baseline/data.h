/* shared synthetic data: class prototypes + noise, values in [0,1], deterministic LCG */
#ifndef DATA_H
#define DATA_H
#include <stdint.h>
static uint32_t lcg_s = 12345u;
static inline uint32_t lcg(void){ lcg_s = lcg_s*1664525u + 1013904223u; return lcg_s>>8; }
static inline float frand(void){ return (float)lcg()/16777216.0f; }
/* x: n*dim, lab: n labels in 0..nc-1 ; proto generated on the fly from class-seeded hash */
static inline float protov(int c,int i){ uint32_t h=(uint32_t)(c*7919+i*104729+17)*2654435761u; h^=h>>15; h*=2246822519u; h^=h>>13; return (h&0xffff)<0x5000 ? (h>>16&0xff)/255.0f : 0.0f; }
static void make_data(float*x,uint8_t*lab,int n,int dim,int nc){
  for(int s=0;s<n;s++){ int c=lcg()%nc; lab[s]=c; for(int i=0;i<dim;i++) x[s*dim+i]=0.7f*protov(c,i)+0.3f*frand(); }
}
#ifndef W
#define W 1
#endif
#if W==1
#define DIM 64
#define NC 10
#ifndef BATCH
#define BATCH 16
#endif
#ifndef NSAMP
#define NSAMP 256
#endif
#elif W==2
#define DIM 784
#define NC 10
#ifndef BATCH
#define BATCH 32
#endif
#ifndef NSAMP
#define NSAMP 512
#endif
#else
#define DIM 784
#define NC 4
#ifndef BATCH
#define BATCH 32
#endif
#ifndef NSAMP
#define NSAMP 512
#endif
#endif
#define NB (NSAMP/BATCH)
#endif
